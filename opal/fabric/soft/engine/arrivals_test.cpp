// Far ends of lanes.
// SPDX-License-Identifier: BSD-3-Clause
#include "arrivals.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Arrivals are taken in order, and not before their time", "[soft][arrivals]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 10));
  bench.add_task(bench.request(Opcode::write, 20));
  bench.ab.out.arrivals = {{100, 0, 10}, {200, 1, 20}};
  bench.schedule.catch_up(150);
  bench.arrivals.arrive(bench.ab);
  REQUIRE(bench.ab.tasks[0].done);
  REQUIRE_FALSE(bench.ab.tasks[1].done);
  REQUIRE(bench.ab.out.timer.at == 200);
}

TEST_CASE("A large message is copied in turns", "[soft][arrivals]") {
  Bench bench;
  const std::uint32_t bytes = 3 * Host::piece_bytes;
  bench.add_task(bench.request(Opcode::write, bytes));
  bench.add_task(bench.request(Opcode::write, 10));
  bench.ab.out.arrivals = {{0, 0, bytes}, {0, 1, 10}};
  bench.arrivals.arrive(bench.ab);
  REQUIRE(bench.host.copies.empty());
  bench.arrivals.arrive(bench.ab);  // what is behind it waits
  REQUIRE(bench.host.copies.empty());
  for (int piece = 1; piece <= 3; ++piece) {
    REQUIRE(bench.lanes.has_backlog());
    REQUIRE_FALSE(bench.ab.tasks[0].done);
    bench.arrivals.move_backlog();
  }
  REQUIRE_FALSE(bench.lanes.has_backlog());
  REQUIRE(bench.ab.tasks[0].done);
  REQUIRE(bench.ab.tasks[1].done);  // and now it was taken
}

TEST_CASE("A read makes a response, whose arrival ends it", "[soft][arrivals]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::read, 10));
  bench.ab.out.arrivals = {{0, 0, 0}};
  bench.arrivals.arrive(bench.ab);
  REQUIRE(bench.ab.back.flow.active());
  bench.lanes.halt(bench.ab.back);
  bench.ab.back.arrivals = {{0, 0, 10}};
  bench.arrivals.come_back(bench.ab);
  REQUIRE(task.done);
  REQUIRE(bench.host.copies[0].to == bench.a.id);
}

TEST_CASE("A stalled queue pair takes nothing until it is resumed", "[soft][arrivals]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 10));
  bench.ab.out.arrivals = {{0, 0, 10}};
  bench.ab.faults.stalled = true;
  bench.arrivals.arrive(bench.ab);
  REQUIRE_FALSE(bench.ab.tasks[0].done);
  REQUIRE(bench.ab.arrive_waiter.on == &bench.ab.resumed);
}

TEST_CASE("A copy that fails fails its task and halts the lane", "[soft][arrivals]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 10));
  bench.ab.out.arrivals = {{0, 0, 10}};
  bench.host.answer = Copied::target_failed;
  bench.arrivals.arrive(bench.ab);
  REQUIRE(bench.ab.tasks[0].status == CompletionStatus::remote_access_error);
  REQUIRE_FALSE(bench.ab.out.moving);
  REQUIRE(bench.ab.retire_timer.at == bench.ab.wire.latency_ns);
}
