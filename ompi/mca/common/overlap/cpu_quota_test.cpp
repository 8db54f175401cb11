// Quotas in control groups of both versions, in a folder that looks like theirs.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/cpu_quota.hpp"

#include <stdlib.h>

#include <fstream>
#include <sstream>
#include <string>

#include "test/support/catch.hpp"

using namespace overlap;

namespace {

class Groups {
 public:
  Groups() {
    std::string name = std::filesystem::temp_directory_path() / "overlap-quota-XXXXXX";
    REQUIRE(mkdtemp(name.data()) != nullptr);
    mounted_ = name;
  }
  ~Groups() { std::filesystem::remove_all(mounted_); }
  Groups(const Groups&) = delete;
  Groups& operator=(const Groups&) = delete;

  void write(const std::string& group, const char* file, const char* text) {
    std::filesystem::create_directories(mounted_ / group);
    std::ofstream(mounted_ / group / file) << text << '\n';
  }
  [[nodiscard]] std::optional<double> quota(const std::string& membership) const {
    std::istringstream text(membership);
    return cpu_quota(text, mounted_);
  }

 private:
  std::filesystem::path mounted_;
};

}  // namespace

TEST_CASE("version 2: the smallest quota on the way up holds", "[interrupt]") {
  Groups at;
  at.write("", "cpu.max", "800000 100000");
  at.write("pod", "cpu.max", "250000 100000");
  at.write("pod/job", "cpu.max", "max 100000");
  CHECK(at.quota("0::/pod/job\n") == 2.5);
  CHECK(at.quota("0::/pod\n") == 2.5);
  CHECK(at.quota("0::/\n") == 8.);
  CHECK(at.quota("0::/other\n") == 8.);
  at.write("pod/job", "cpu.max", "50000 50000");
  CHECK(at.quota("0::/pod/job\n") == 1.);
}

TEST_CASE("version 1: the controller cpu, and the root where the path is the host's",
          "[interrupt]") {
  Groups at;
  at.write("cpu", "cpu.cfs_quota_us", "400000");
  at.write("cpu", "cpu.cfs_period_us", "100000");
  at.write("cpu/slice", "cpu.cfs_quota_us", "-1");
  at.write("cpu/slice", "cpu.cfs_period_us", "100000");
  const char* both = "9:cpuset:/other\n4:cpu,cpuacct:/slice\n0::/\n";
  CHECK(at.quota(both) == 4.);
  CHECK(at.quota("4:cpuacct,cpu:/docker/0a1b\n") == 4.);
  CHECK(at.quota("4:cpu:/\n") == 4.);
  CHECK_FALSE(at.quota("4:cpuset:/\n3:cpuacct:/slice\n"));
  at.write("cpu/slice", "cpu.cfs_quota_us", "150000");
  CHECK(at.quota(both) == 1.5);
}

TEST_CASE("no quota: nothing is there, or it cannot be read", "[interrupt]") {
  Groups at;
  CHECK_FALSE(at.quota(""));
  CHECK_FALSE(at.quota("0::/\n"));
  CHECK_FALSE(at.quota("0::"));
  CHECK_FALSE(at.quota("nonsense"));
  at.write("", "cpu.max", "max 100000");
  CHECK_FALSE(at.quota("0::/\n"));
  at.write("", "cpu.max", "");
  CHECK_FALSE(at.quota("0::/\n"));
  at.write("", "cpu.max", "100000 0");
  CHECK_FALSE(at.quota("0::/\n"));
}
