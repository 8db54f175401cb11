// Events that a thread finds and only another thread may handle.
// SPDX-License-Identifier: BSD-3-Clause
#include "left_events.hpp"

#include "test/support/catch.hpp"

using overlap::ring::LeftEvents;

TEST_CASE("A stranger's event holds up its own process and no other one", "[ring][left_events]") {
  LeftEvents<int> left;
  CHECK_FALSE(left.holds_up(7));
  left.leave(1, 7);
  CHECK(left.holds_up(7));
  CHECK_FALSE(left.holds_up(8));
  left.leave(2, 8);
  left.leave(3, 7);
  CHECK(left.take() == 1);
  CHECK(left.holds_up(7));  // another one is there
  CHECK(left.take() == 2);
  CHECK_FALSE(left.holds_up(8));
  CHECK(left.take() == 3);
  CHECK_FALSE(left.holds_up(7));
  CHECK_FALSE(left.take());
}

TEST_CASE("An event of nobody holds up nobody", "[ring][left_events]") {
  LeftEvents<int> left;
  left.leave(1, std::nullopt);
  CHECK_FALSE(left.holds_up(std::nullopt));
  CHECK_FALSE(left.holds_up(7));
  CHECK(left.take() == 1);
}
