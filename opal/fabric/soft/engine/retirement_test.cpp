// The front of a send queue.
// SPDX-License-Identifier: BSD-3-Clause
#include "retirement.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Completions are visible in order, an unsignalled one with the next",
          "[soft][retirement]") {
  Bench bench;
  WorkRequest quiet = bench.request(Opcode::write, 10);
  quiet.signalled = false;
  Task& first = bench.add_task(quiet);
  Task& second = bench.add_task(bench.request(Opcode::write, 10));
  second.done = true;
  second.done_at = 50;
  bench.retirement.arm(bench.ab);
  REQUIRE_FALSE(bench.ab.retire_timer.armed());  // the first is not done
  first.done = true;
  first.done_at = 80;
  bench.retirement.arm(bench.ab);
  REQUIRE(bench.ab.retire_timer.at == 80);
  REQUIRE(bench.schedule.take_due(80) == &bench.ab.retire_timer);
  REQUIRE(bench.retirement.retire(bench.ab) == CompletionStatus::success);
  REQUIRE(bench.host.completions.size() == 1);
  REQUIRE(bench.ab.tasks.empty());
  REQUIRE(bench.ab.retired == 2);
}

TEST_CASE("A failed task stops at the front", "[soft][retirement]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::write, 10));
  task.done = true;
  task.done_at = 0;
  task.status = CompletionStatus::remote_access_error;
  REQUIRE(bench.retirement.retire(bench.ab) == CompletionStatus::remote_access_error);
  REQUIRE(bench.ab.tasks.size() == 1);
  REQUIRE(bench.host.completions.empty());
}
