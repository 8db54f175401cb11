// Copies of the kernel that are dearer than messages, and those that are not.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/copy_cost.hpp"
#include "test/support/catch.hpp"

using namespace overlap::newrma;

namespace {

/// That many copies, those that are to be timed took `ns`. @returns  how many were timed
int copy(CopyCost& cost, int copies, std::uint64_t ns, std::uint64_t bytes = 8) {
  int timed = 0;
  for (int i = 0; i < copies; ++i) {
    if (!cost.times_next(bytes)) continue;
    cost.took(ns);
    ++timed;
  }
  return timed;
}

/// Operations of so many bytes. @returns  how many are sent
int sent_of(CopyCost& cost, int operations, std::uint64_t bytes) {
  int sent = 0;
  for (int i = 0; i < operations; ++i) sent += cost.sends(bytes) ? 1 : 0;
  return sent;
}

}  // namespace

TEST_CASE("CopyCost: nothing is sent before four copies have been timed") {
  CopyCost cost;
  CHECK(sent_of(cost, 10, 8) == 0);
  CHECK(copy(cost, 3, 9000) == 3);
  CHECK(sent_of(cost, 10, 8) == 0);
  CHECK(copy(cost, 1, 9000) == 1);
  CHECK(sent_of(cost, 10, 8) == 10);
}

TEST_CASE("CopyCost: where the kernel is fast it copies, and one copy in eight is timed") {
  CopyCost cost;
  CHECK(copy(cost, 4, 400) == 4);
  CHECK(copy(cost, 80, 400) == 10);
  CHECK(sent_of(cost, 1000, 1) == 0);
}

TEST_CASE("CopyCost: where the kernel is slow short operations are sent, and one in 64 is copied") {
  CopyCost cost;
  static_cast<void>(copy(cost, 4, 2600));
  CHECK(sent_of(cost, 640, 8) == 630);
  CHECK(sent_of(cost, 64, 8192) == 63);
  // From here on a second copy takes as long as the call.
  CHECK(cost.is_dear(11'199));
  CHECK_FALSE(cost.is_dear(11'200));
}

TEST_CASE("CopyCost: memory touched first makes no copy dear") {
  CopyCost cost;
  static_cast<void>(copy(cost, 3, 60'000));
  static_cast<void>(copy(cost, 1, 400));
  CHECK_FALSE(cost.is_dear(1));
}

TEST_CASE("CopyCost: what the kernel takes is learned again") {
  CopyCost cost;
  static_cast<void>(copy(cost, 4, 2600));
  REQUIRE(cost.is_dear(8));
  // Each one that is copied meanwhile is timed.
  CHECK(copy(cost, 2, 400) == 2);
  CHECK_FALSE(cost.is_dear(8));
  static_cast<void>(copy(cost, 400, 2600));
  CHECK(cost.is_dear(8));
}

TEST_CASE("CopyCost: long copies are not timed") {
  CopyCost cost;
  CHECK(copy(cost, 100, 400, CopyCost::timed_max_bytes + 1) == 0);
  CHECK(copy(cost, 1, 400, CopyCost::timed_max_bytes) == 1);
}
