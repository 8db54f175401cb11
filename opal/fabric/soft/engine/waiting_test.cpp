// Waiting steps.
// SPDX-License-Identifier: BSD-3-Clause
#include "waiting.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("A raised condition takes each waiting step once, in order", "[soft][waiting]") {
  Bench bench;
  Condition condition;
  wait(bench.ab.start_waiter, condition);
  wait(bench.ba.arrive_waiter, condition);
  raise(condition, bench);
  REQUIRE(bench.steps == std::vector<std::pair<Pair*, Stage>>{{&bench.ab, Stage::start},
                                                              {&bench.ba, Stage::arrive}});
  raise(condition, bench);
  REQUIRE(bench.steps.size() == 2);
}

TEST_CASE("A waiter waits for one condition at a time and may leave", "[soft][waiting]") {
  Bench bench;
  Condition first;
  Condition second;
  wait(bench.ab.start_waiter, first);
  wait(bench.ab.start_waiter, second);
  raise(first, bench);
  REQUIRE(bench.steps.empty());
  leave(bench.ab.start_waiter);
  leave(bench.ab.start_waiter);  // harmless
  raise(second, bench);
  REQUIRE(bench.steps.empty());
}

TEST_CASE("A step that waits anew is not taken again in the same turn", "[soft][waiting]") {
  struct Stubborn final : Steps {
    explicit Stubborn(Condition& condition) : condition(condition) {}
    void go_on(Pair& pair, Stage) override {
      ++calls;
      wait(pair.start_waiter, condition);
    }
    void go_on(Manager&) override {}
    Condition& condition;
    int calls = 0;
  };
  Pair pair(1);
  Condition condition;
  Stubborn steps(condition);
  wait(pair.start_waiter, condition);
  raise(condition, steps);
  REQUIRE(steps.calls == 1);
  REQUIRE(pair.start_waiter.on == &condition);
}
