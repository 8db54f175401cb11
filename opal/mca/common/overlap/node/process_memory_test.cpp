// Writes into a child's memory, and who is not written to.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/process_memory.hpp"
#include "test/support/catch.hpp"

#include <csignal>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

namespace {

using namespace overlap::node;

constexpr std::size_t area_bytes = std::size_t{1} << 20U;

/// A process that maps the same memory as its parent, at the same address, and sleeps.
class Child {
 public:
  Child() {
    void* const mapped =
        mmap(nullptr, area_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(mapped != MAP_FAILED);
    area = static_cast<unsigned char*>(mapped);
    facts = own_process_facts();  // the child has the same token at the same place
    pid_ = fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      for (;;) pause();
    }
    facts.pid = pid_;
  }
  ~Child() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(area, area_bytes);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] Place at(std::size_t offset, std::uint64_t bytes) const {
    return {reinterpret_cast<std::uint64_t>(area + offset), bytes};
  }

  unsigned char* area = nullptr;  ///< the child's; shared, so that the test sees it
  ProcessFacts facts;

 private:
  pid_t pid_ = -1;
};

/// May this process write into its children's memory? Some containers refuse it.
bool is_allowed(const Child& child) { return scatter(child.facts, {}, nullptr).has_value(); }

}  // namespace

TEST_CASE("process memory: many places with few calls") {
  const Child child;
  if (!is_allowed(child)) {
    WARN("process_vm_readv is refused here: nothing is tested");
    return;
  }
  // More than one call takes, of different lengths, and one of nothing.
  std::vector<Place> places;
  std::vector<std::byte> from;
  for (std::size_t i = 0; i < 3000; ++i) {
    places.push_back(child.at(i * 64, i % 17));
    for (std::size_t k = 0; k < i % 17; ++k) from.push_back(static_cast<std::byte>(i + k));
  }
  REQUIRE(scatter(child.facts, places, from.data()) == from.size());
  std::size_t wrong = 0, touched = 0;
  for (std::size_t i = 0; i < 3000; ++i) {
    for (std::size_t k = 0; k < 64; ++k) {
      const unsigned char found = child.area[i * 64 + k];
      if (k < i % 17)
        wrong += found != static_cast<unsigned char>(i + k) ? 1 : 0;
      else
        touched += found != 0 ? 1 : 0;
    }
  }
  CHECK(wrong == 0);
  CHECK(touched == 0);
}

TEST_CASE("process memory: what is no memory is said") {
  const Child child;
  if (!is_allowed(child)) {
    WARN("process_vm_readv is refused here: nothing is tested");
    return;
  }
  const std::byte from[32] = {};
  const Place good = child.at(0, 16), bad{16, 16};
  CHECK(scatter(child.facts, std::vector{bad, good}, from) == 0U);
  CHECK(scatter(child.facts, std::vector{good, bad}, from) == 16U);
  CHECK(scatter_fetched(child.facts, std::vector{bad, good}, from) == 0U);
  CHECK(scatter_fetched(child.facts, std::vector{good, bad}, from) == 16U);
}

TEST_CASE("process memory: two places are fetched one behind the other") {
  const Child child;
  for (std::size_t i = 0; i < 64; ++i) child.area[i] = static_cast<unsigned char>(i);
  std::byte to[20] = {};
  const std::vector places{child.at(40, 8), child.at(3, 12)};
  if (!is_allowed(child)) {
    CHECK_FALSE(fetch(child.facts, places, to));
    return;
  }
  REQUIRE(fetch(child.facts, places, to));
  for (std::size_t i = 0; i < 20; ++i) CHECK(to[i] == std::byte(i < 8 ? 40 + i : i - 5));
  CHECK(fetch(child.facts, {}, nullptr));
  const Place bad{16, 16};
  CHECK_FALSE(fetch(child.facts, std::vector{bad}, to));
  CHECK_FALSE(fetch(child.facts, std::vector{child.at(0, 4), bad}, to));
  CHECK_FALSE(fetch(child.facts, std::vector(3, child.at(0, 4)), to));  // more than it takes
}

TEST_CASE("process memory: another process is not read from") {
  const Child child;
  std::byte to[16] = {};
  const std::vector places{child.at(0, 16)};
  CHECK_FALSE(fetch({}, places, to));
  ProcessFacts other = child.facts;
  other.token ^= 1;
  CHECK_FALSE(fetch(other, places, to));
  other = child.facts;
  other.pid = 1 << 30;  // more than Linux has
  CHECK_FALSE(fetch(other, places, to));
}

TEST_CASE("process memory: another process is not written to") {
  const Child child;
  const std::byte from[16] = {std::byte{1}};
  const std::vector places{child.at(0, 16)};
  CHECK_FALSE(scatter({}, places, from).has_value());
  ProcessFacts other = child.facts;
  other.token ^= 1;
  CHECK_FALSE(scatter(other, places, from).has_value());
  other = child.facts;
  other.pid = 1 << 30;  // more than Linux has
  CHECK_FALSE(scatter(other, places, from).has_value());
  CHECK(child.area[0] == 0);
  if (is_allowed(child)) {
    CHECK(scatter(child.facts, places, from) == 16U);
    CHECK(child.area[0] == 1);
  }
}
