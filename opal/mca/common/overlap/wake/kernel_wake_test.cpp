// What KernelWake says where the module cannot be used; test/vm runs it with the module.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/wake/kernel_wake.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "kernel/ompi_wake.h"
#include "test/support/catch.hpp"

using overlap::describe;
using overlap::KernelWake;
using overlap::KernelWakeAbsence;
using overlap::KernelWakeUnavailable;

namespace {

int open_files() {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) count += ::fcntl(fd, F_GETFD) != -1;
  return count;
}

}  // namespace

TEST_CASE("a missing device, a stranger and a file are absences", "[kernel_wake]") {
  const int before = open_files();
  const auto missing = KernelWake::try_open("/nowhere/ompi_wake", 1, 0, 0);
  REQUIRE(std::holds_alternative<KernelWakeUnavailable>(missing));
  CHECK(std::get<KernelWakeUnavailable>(missing).why == KernelWakeAbsence::no_device);
  CHECK(std::get<KernelWakeUnavailable>(missing).error_number == ENOENT);

  for (const char* stranger : {"/dev/null", "/dev/zero"}) {
    const auto other = KernelWake::try_open(stranger, 1, 0, 0);
    REQUIRE(std::holds_alternative<KernelWakeUnavailable>(other));
    CHECK(std::get<KernelWakeUnavailable>(other).why == KernelWakeAbsence::other_version);
  }
  CHECK(open_files() == before);
}

TEST_CASE("each absence has a sentence of its own", "[kernel_wake]") {
  std::string seen;
  for (auto why : {KernelWakeAbsence::no_device, KernelWakeAbsence::no_permission,
                   KernelWakeAbsence::other_version, KernelWakeAbsence::rank_taken,
                   KernelWakeAbsence::limit, KernelWakeAbsence::system}) {
    REQUIRE(std::strlen(describe(why)) > 0);
    CHECK(seen.find(describe(why)) == std::string::npos);
    seen += describe(why);
  }
}

TEST_CASE("the layout that the kernel reads", "[kernel_wake]") {
  STATIC_REQUIRE(std::is_standard_layout_v<ompi_wake_join>);
  STATIC_REQUIRE(sizeof(ompi_wake_join) == 24);
  STATIC_REQUIRE(offsetof(ompi_wake_join, version) == 0);
  STATIC_REQUIRE(offsetof(ompi_wake_join, bytes) == 4);
  STATIC_REQUIRE(offsetof(ompi_wake_join, job) == 8);
  STATIC_REQUIRE(offsetof(ompi_wake_join, rank) == 16);
  STATIC_REQUIRE(offsetof(ompi_wake_join, flags) == 20);
}
