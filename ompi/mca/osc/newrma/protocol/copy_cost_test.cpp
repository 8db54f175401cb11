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
    cost.took(bytes, ns);
    ++timed;
  }
  return timed;
}

}  // namespace

TEST_CASE("CopyCost: no copy is dear before eight have been timed") {
  CopyCost cost;
  CHECK_FALSE(cost.is_dear(8));
  CHECK(copy(cost, 7, 9000) == 7);
  CHECK_FALSE(cost.is_dear(8));
  CHECK(copy(cost, 1, 9000) == 1);
  CHECK(cost.is_dear(8));
}

TEST_CASE("CopyCost: where the kernel is fast one copy in eight is timed") {
  CopyCost cost;
  CHECK(copy(cost, 8, 400) == 8);
  CHECK(copy(cost, 80, 400) == 10);
  CHECK_FALSE(cost.is_dear(1));
}

TEST_CASE("CopyCost: an operation of two calls is dear sooner than one of one") {
  CopyCost cost;
  static_cast<void>(copy(cost, 8, 800));
  CHECK_FALSE(cost.is_dear(8));
  CHECK(cost.is_dear(8, 2));
}

TEST_CASE("CopyCost: where the kernel is slow short operations are dear, long ones never") {
  CopyCost cost;
  static_cast<void>(copy(cost, 8, 2600, 0));
  CHECK(cost.is_dear(8));
  // From here on a second copy takes as long as the call.
  CHECK(cost.is_dear(11'199));
  CHECK_FALSE(cost.is_dear(11'200));
  CopyCost slower;
  static_cast<void>(copy(slower, 8, 60'000));
  CHECK(slower.is_dear(CopyCost::max_bytes));
  CHECK_FALSE(slower.is_dear(CopyCost::max_bytes + 1));
}

TEST_CASE("CopyCost: one in 64 that would be sent is copied") {
  CopyCost cost;
  int copied = 0;
  for (int i = 0; i < 640; ++i) copied += cost.tries_copy() ? 1 : 0;
  CHECK(copied == 10);
}

TEST_CASE("CopyCost: memory touched first makes no copy dear") {
  CopyCost cost;
  static_cast<void>(copy(cost, 7, 60'000));
  static_cast<void>(copy(cost, 1, 400));
  CHECK_FALSE(cost.is_dear(1));
}

TEST_CASE("CopyCost: what the kernel takes is learned again, by operations of any size") {
  const std::uint64_t bytes = GENERATE(8, 4096);
  CopyCost cost;
  static_cast<void>(copy(cost, 8, 2600, bytes));
  REQUIRE(cost.is_dear(bytes));
  // As long as it is dear, each one that is copied is timed.
  CHECK(copy(cost, 2, 400, bytes) == (bytes == 8 ? 2 : 1));
  CHECK_FALSE(cost.is_dear(bytes));
  static_cast<void>(copy(cost, 400, 2600, bytes));
  CHECK(cost.is_dear(bytes));
}

TEST_CASE("CopyCost: the bytes of a copy are none of the call, and long ones are not timed") {
  CopyCost cost;
  CHECK(copy(cost, 8, 1200 + CopyCost::max_bytes / 16, CopyCost::max_bytes) == 8);
  CHECK_FALSE(cost.is_dear(0));  // 1200 ns, not more
  CHECK(copy(cost, 100, 9000, CopyCost::max_bytes + 1) == 0);
}
