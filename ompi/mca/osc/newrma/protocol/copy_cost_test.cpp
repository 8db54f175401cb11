// Copies of the kernel that are dearer than messages, and those that are not.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/copy_cost.hpp"
#include "test/support/catch.hpp"

using namespace overlap::newrma;

namespace {

/// That many looks; copies that are wanted for them took `ns`. @returns  how many were
int look(CopyCost& cost, int looks, std::uint64_t ns) {
  int timed = 0;
  for (int i = 0; i < looks; ++i) {
    for (; cost.wants_sample() && timed < 1000; ++timed) cost.took(ns);
  }
  return timed;
}

}  // namespace

TEST_CASE("CopyCost: eight copies are timed at first, and one for 64 looks") {
  CopyCost cost;
  CHECK_FALSE(cost.is_dear(8));
  CHECK(look(cost, 1, 9000) == 8);
  CHECK(cost.is_dear(8));
  CHECK(look(cost, 64 * 5, 9000) == 5);
}

TEST_CASE("CopyCost: nothing is dear where no copy can be timed") {
  CopyCost cost;
  for (int i = 0; i < 100; ++i) CHECK(cost.wants_sample());
  CHECK_FALSE(cost.is_dear(8));
}

TEST_CASE("CopyCost: an operation of two calls is dear sooner than one of one") {
  CopyCost cost;
  static_cast<void>(look(cost, 1, 800));
  CHECK_FALSE(cost.is_dear(8));
  CHECK(cost.is_dear(8, 2));
}

TEST_CASE("CopyCost: where the kernel is slow short operations are dear, long ones never") {
  CopyCost cost;
  static_cast<void>(look(cost, 1, 2600));
  CHECK(cost.is_dear(8));
  // From here on a second copy takes as long as the call.
  CHECK(cost.is_dear(11'199));
  CHECK_FALSE(cost.is_dear(11'200));
  CopyCost slower;
  static_cast<void>(look(slower, 1, 60'000));
  CHECK(slower.is_dear(CopyCost::max_bytes));
  CHECK_FALSE(slower.is_dear(CopyCost::max_bytes + 1));
}

TEST_CASE("CopyCost: memory touched first makes no copy dear") {
  CopyCost cost;
  for (int i = 0; i < 7; ++i) cost.took(60'000);
  cost.took(400);
  CHECK_FALSE(cost.is_dear(1));
}

TEST_CASE("CopyCost: what the kernel takes is learned again") {
  CopyCost cost;
  static_cast<void>(look(cost, 1, 2600));
  REQUIRE(cost.is_dear(8));
  static_cast<void>(look(cost, 128, 400));
  CHECK_FALSE(cost.is_dear(8));
  static_cast<void>(look(cost, 64 * 50, 2600));
  CHECK(cost.is_dear(8));
}
