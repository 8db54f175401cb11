// Two heaps, one clock.
// SPDX-License-Identifier: BSD-3-Clause
#include "schedule.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Due timers come in order, hidden ones first at equal times", "[soft][schedule]") {
  Pair owner(1);
  Timer visible(Alarm::retire, owner);
  Timer hidden(Alarm::request, owner);
  Timer late(Alarm::arrive, owner);
  Schedule schedule;
  schedule.set_visible(visible, 10);
  schedule.set_hidden(hidden, 10);
  schedule.set_visible(late, 30);
  REQUIRE(schedule.next_visible(5) == 10);
  REQUIRE(schedule.take_due(9) == nullptr);
  REQUIRE(schedule.now() == 0);
  REQUIRE(schedule.take_due(20) == &hidden);
  REQUIRE(schedule.take_due(20) == &visible);
  REQUIRE(schedule.now() == 10);
  REQUIRE(schedule.take_due(20) == nullptr);
  REQUIRE(schedule.next_visible(5) == 30);
}

TEST_CASE("A hidden timer shows one latency later", "[soft][schedule]") {
  Pair owner(1);
  Timer hidden(Alarm::request, owner);
  Schedule schedule;
  REQUIRE(schedule.next_visible(5) == never);
  schedule.set_hidden(hidden, 10);
  REQUIRE(schedule.next_visible(5) == 15);
}

TEST_CASE("The clock never goes back", "[soft][schedule]") {
  Pair owner(1);
  Timer timer(Alarm::start, owner);
  Schedule schedule;
  schedule.catch_up(100);
  schedule.set_visible(timer, 50);
  REQUIRE(schedule.take_due(100) == &timer);
  REQUIRE(schedule.now() == 100);
}
