// The interpreter: one rank by hand, and groups of ranks over a network that reorders.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "ompi/mca/coll/mq/protocol/dice.hpp"
#include "ompi/mca/coll/mq/protocol/interpreter.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::coll_mq;
using Kind = Action::Kind;
using model::Dice;

Message data(std::uint32_t sequence, std::uint16_t step = 0, std::uint32_t oldest = 0) {
  return {MessageKind::data, step, Sequence(sequence), Sequence(oldest)};
}

TEST_CASE("a barrier of two sends, waits and ends") {
  Interpreter one;
  const PlanId barrier = one.add(barrier_plan(0, 2));
  one.start(barrier, 7);
  const auto send = one.advance();
  REQUIRE(send);
  CHECK(send->kind == Kind::send);
  CHECK(send->peer == 1);
  CHECK(send->message == data(0));
  CHECK_FALSE(one.advance());
  CHECK_FALSE(one.is_runnable());
  CHECK(one.arrived(1, data(0)).kind == Arrival::Kind::counted);
  const auto end = one.advance();
  REQUIRE(end);
  CHECK(end->kind == Kind::finished);
  CHECK(end->cookie == 7);
  CHECK(end->outcome == Outcome::done);
  CHECK(one.is_idle());
}

TEST_CASE("a message is handled in the past, in order, twice, and in the future") {
  Interpreter one(4);
  const PlanId barrier = one.add(barrier_plan(0, 2));
  one.start(barrier, 1);
  CHECK(one.arrived(1, data(1)).kind == Arrival::Kind::kept);
  CHECK(one.arrived(1, data(1)).kind == Arrival::Kind::stale);
  CHECK(one.arrived(1, data(0)).kind == Arrival::Kind::counted);
  CHECK(one.arrived(1, data(0)).kind == Arrival::Kind::stale);
  CHECK(one.advance()->kind == Kind::send);
  CHECK(one.advance()->kind == Kind::finished);
  CHECK(one.arrived(1, data(0)).kind == Arrival::Kind::stale);
  CHECK(one.counts().kept == 1);
  CHECK(one.counts().stale == 3);
  CHECK_FALSE(one.has_failed());
}

TEST_CASE("a message that no peer may send fails the stream") {
  Interpreter one(4);
  const PlanId barrier = one.add(barrier_plan(0, 2));
  one.start(barrier, 1);
  SECTION("too far ahead") { CHECK(one.arrived(1, data(4)).kind == Arrival::Kind::refused); }
  SECTION("a message more than the plan has") {
    CHECK(one.arrived(1, data(0, 1)).kind == Arrival::Kind::refused);
  }
  SECTION("from a rank that the plan does not name, before it has begun") {
    CHECK(one.arrived(5, data(1)).kind == Arrival::Kind::kept);
    one.start(barrier, 2);
  }
  CHECK(one.has_failed());
  for (auto action = one.advance(); action; action = one.advance()) {
    CHECK(action->kind == Kind::finished);
    CHECK(action->outcome == Outcome::failed);
  }
  CHECK(one.is_idle());
}

TEST_CASE("what the transport refuses is sent when there is room") {
  Interpreter one;
  const PlanId barrier = one.add(barrier_plan(0, 2));
  one.start(barrier, 1);
  const auto send = one.advance();
  one.retry(*send);
  CHECK_FALSE(one.advance());
  CHECK(one.arrived(1, data(0)).kind == Arrival::Kind::counted);
  CHECK_FALSE(one.advance());
  one.room();
  const auto again = one.advance();
  REQUIRE(again);
  CHECK(again->message == send->message);
  CHECK(one.advance()->kind == Kind::finished);
}

TEST_CASE("a lost peer ends collectives under way, pending and to come") {
  Interpreter one(2);
  const PlanId barrier = one.add(barrier_plan(0, 2));
  for (Cookie i = 0; i < 3; ++i) one.start(barrier, i);
  while (one.advance()) {}
  one.fail();
  one.start(barrier, 3);
  for (Cookie i = 0; i < 4; ++i) {
    const auto end = one.advance();
    REQUIRE(end);
    CHECK(end->kind == Kind::finished);
    CHECK(end->outcome == Outcome::failed);
    CHECK(end->cookie == i);
  }
  CHECK(one.is_idle());
}

/// Ranks that enter `count` barriers each, when the dice say so, at most `ahead` at once.
struct Group {
  struct Flight {
    Rank from = 0;
    Rank to = 0;
    Message message;
  };

  Group(Rank size, BarrierShape shape, std::uint32_t window, Sequence first)
      : entered(static_cast<std::size_t>(size)), left(entered.size()) {
    for (Rank r = 0; r < size; ++r) {
      ranks.push_back(std::make_unique<Interpreter>(window, first));
      barrier = ranks.back()->add(barrier_plan(r, size, shape));
    }
  }

  void run(Dice& dice, Cookie count, Cookie ahead) {
    for (std::size_t steps = 0;; ++steps) {
      const std::size_t r = dice.below(ranks.size());
      switch (dice.below(3)) {
        case 0:
          if (entered[r] < count && entered[r] - left[r] < ahead)
            ranks[r]->start(barrier, entered[r]++);
          break;
        case 1: deliver(dice); break;
        default: advance(r, dice); break;
      }
      if (is_over(count)) return;
      REQUIRE(steps < 1000 * ranks.size() * (count + 10));
    }
  }
  void deliver(Dice& dice) {
    if (flights.empty()) return;
    auto& one = flights[dice.below(flights.size())];
    const Flight flight = std::exchange(one, flights.back());
    flights.pop_back();
    const auto to = static_cast<std::size_t>(flight.to);
    const auto arrival = ranks[to]->arrived(flight.from, flight.message);
    REQUIRE(arrival.kind != Arrival::Kind::refused);
    REQUIRE(arrival.kind != Arrival::Kind::stale);
  }
  void advance(std::size_t r, Dice& dice) {
    if (dice.below(4) == 0) ranks[r]->room();
    while (auto action = ranks[r]->advance()) {
      if (action->kind == Kind::finished) {
        ++left[r];
        for (const Cookie other : entered) REQUIRE(other > action->cookie);
        continue;
      }
      REQUIRE(action->kind == Kind::send);
      if (dice.below(8) == 0) {
        ranks[r]->retry(*action);
        continue;
      }
      flights.push_back({static_cast<Rank>(r), action->peer, action->message});
    }
  }
  bool is_over(Cookie count) const {
    for (std::size_t r = 0; r < ranks.size(); ++r)
      if (left[r] != count || !ranks[r]->is_idle()) return false;
    return flights.empty();
  }

  std::vector<std::unique_ptr<Interpreter>> ranks;
  PlanId barrier = 0;
  std::vector<Cookie> entered;
  std::vector<Cookie> left;
  std::vector<Flight> flights;
};

TEST_CASE("nobody leaves a barrier before all have entered") {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Dice dice(seed);
    const Rank size = 1 + static_cast<Rank>(dice.below(12));
    const BarrierShape shape{2 + static_cast<Rank>(dice.below(4)), Flavour::write_immediate};
    const std::uint32_t window = 1U << dice.below(4);
    const Cookie ahead = 1 + dice.below(6);
    INFO("seed " << seed << ", " << size << " ranks, radix " << shape.radix << ", window "
                 << window);
    // Numbers start again on the way.
    Group group(size, shape, window, Sequence(Sequence::mask - 10));
    group.run(dice, 30, ahead);
  }
}

}  // namespace
