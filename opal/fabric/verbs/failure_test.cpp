// Tests: words for errors of the system.
// SPDX-License-Identifier: BSD-3-Clause
#include "failure.hpp"

#include <sys/resource.h>

#include <cerrno>

#include "test/support/catch.hpp"

using overlap::fabric::Error;
using namespace overlap::fabric::verbs;

namespace {

/// Lower the memlock limit for one test.
class MemoryLimit {
 public:
  explicit MemoryLimit(rlim_t bytes) {
    getrlimit(RLIMIT_MEMLOCK, &before_);
    rlimit lower = before_;
    lower.rlim_cur = bytes;
    good_ = bytes <= before_.rlim_max && setrlimit(RLIMIT_MEMLOCK, &lower) == 0;
  }
  ~MemoryLimit() { setrlimit(RLIMIT_MEMLOCK, &before_); }
  [[nodiscard]] bool good() const { return good_; }

 private:
  rlimit before_{};
  bool good_ = false;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("out of memory under a memlock limit names the limit and how to raise it", "[verbs]") {
  const MemoryLimit limit(64 * 1024);
  REQUIRE(limit.good());
  const Error error = failure("cannot register memory with rxe0:1", ENOMEM);
  CHECK(error.kind == Error::Kind::memory_limit);
  const std::string text = error.what();
  CHECK(has(text, "cannot register memory with rxe0:1"));
  CHECK(has(text, "64 KiB"));
  CHECK(has(text, "ulimit -l"));
  CHECK(has(text, "/etc/security/limits.d"));
  CHECK(has(text, "LimitMEMLOCK"));
}

TEST_CASE("out of memory without a limit is no matter of limits", "[verbs]") {
  const MemoryLimit limit(RLIM_INFINITY);
  if (!limit.good()) return;  // the hard limit is lower here, and only root may raise it
  CHECK(failure("x", ENOMEM).kind == Error::Kind::system);
  CHECK(memory_limit_advice().empty());
}

TEST_CASE("a refused access says where", "[verbs]") {
  const Error error = failure("cannot open rxe0", EACCES);
  CHECK(error.kind == Error::Kind::no_permission);
  CHECK(has(error.what(), "/dev/infiniband"));
  CHECK(failure("x", EIO).kind == Error::Kind::system);
}
