// Tasks that have succeeded.
// SPDX-License-Identifier: BSD-3-Clause
#include "delivery.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("A delivered send completes the receive now and the send one latency later",
          "[soft][delivery]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send, 10));
  task.holds_receive = true;
  bench.delivery.deliver(bench.ab, task);
  REQUIRE(bench.host.completions.size() == 1);
  REQUIRE(bench.host.completions[0].opcode == Opcode::receive);
  REQUIRE(bench.ab.retire_timer.at == bench.ab.wire.latency_ns);
}

TEST_CASE("A delivered write is nobody's completion at the receiver", "[soft][delivery]") {
  Bench bench;
  WorkRequest quiet = bench.request(Opcode::write, 10);
  quiet.signalled = false;
  bench.delivery.deliver(bench.ab, bench.add_task(quiet));
  REQUIRE(bench.host.completions.empty());
  REQUIRE_FALSE(bench.ab.retire_timer.armed());
}

TEST_CASE("An answered read lets those go on that wait for reads", "[soft][delivery]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::read, 10));
  wait(bench.ab.start_waiter, bench.ab.reads_ended);
  bench.delivery.answer(bench.ab, task);
  REQUIRE(bench.ab.outstanding_reads == 0);
  REQUIRE(bench.steps.size() == 1);
  REQUIRE(bench.ab.retire_timer.armed());
}
