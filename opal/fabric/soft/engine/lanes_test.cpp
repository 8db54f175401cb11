// Messages on their way.
// SPDX-License-Identifier: BSD-3-Clause
#include "lanes.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

namespace {

/// Run the wire until the lane's message has left. @returns  its last arrival
Arrival send_all(Bench& bench, Lane& lane) {
  for (bool left = false; !left;) {
    REQUIRE(bench.schedule.take_due(never - 1) == &lane.flow.timer);
    left = bench.lanes.mark_reached(bench.ab, lane);
  }
  return lane.arrivals.back();
}

}  // namespace

TEST_CASE("A request arrives one latency after it has left", "[soft][lanes]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 1000));
  bench.lanes.send_request(bench.ab, 0, 1000);
  const Arrival arrival = send_all(bench, bench.ab.out);
  REQUIRE(arrival.at == 200 + 1000 + 5000);
  REQUIRE(arrival.bytes == 1000);
  REQUIRE_FALSE(bench.ab.out.flow.active());
  REQUIRE(bench.schedule.take_due(arrival.at) == &bench.ab.out.timer);
}

TEST_CASE("Faults delay requests and tear their last byte off", "[soft][lanes]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 1000));
  bench.ab.faults.delay_ns = 300;
  bench.ab.faults.tear_ns = 70;
  bench.lanes.send_request(bench.ab, 0, 1000);
  const Arrival last = send_all(bench, bench.ab.out);
  REQUIRE(bench.ab.out.arrivals.size() == 2);
  REQUIRE(bench.ab.out.arrivals[0].bytes == 999);
  REQUIRE(bench.ab.out.arrivals[0].at == 6500);
  REQUIRE(last.at == 6570);
}

TEST_CASE("Responses wait for each other", "[soft][lanes]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::read, 1000));
  bench.add_task(bench.request(Opcode::read, 1000));
  bench.ab.responses = {0, 1};
  bench.lanes.send_response(bench.ab);
  bench.lanes.send_response(bench.ab);  // the lane is not free
  REQUIRE(bench.ab.responses.size() == 1);
  REQUIRE(bench.ab.back.flow.task == 0);
  send_all(bench, bench.ab.back);
  bench.lanes.send_response(bench.ab);
  REQUIRE(bench.ab.back.flow.task == 1);
}

TEST_CASE("A halted lane forgets all that is on its way", "[soft][lanes]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 1000));
  bench.lanes.send_request(bench.ab, 0, 1000);
  bench.lanes.move_later({&bench.ab, &bench.ab.out});
  bench.lanes.move_later({&bench.ab, &bench.ab.back});
  bench.lanes.halt(bench.ab.out);
  REQUIRE_FALSE(bench.ab.out.flow.active());
  REQUIRE(bench.lanes.take_moving().lane == &bench.ab.back);
  REQUIRE_FALSE(bench.lanes.has_backlog());
  REQUIRE(bench.schedule.take_due(never - 1) == nullptr);
}

TEST_CASE("A dead link is given up only while a request waits for an answer", "[soft][lanes]") {
  Bench bench;
  bench.wire.set_down(bench.wire.node(1), true, 0);
  bench.lanes.watch_link(bench.ab);
  REQUIRE_FALSE(bench.ab.give_up_timer.armed());
  bench.add_task(bench.request(Opcode::write, 1000));
  bench.lanes.watch_link(bench.ab);
  REQUIRE(bench.ab.give_up_timer.at == bench.a.retry.answer_ns);
  bench.wire.set_down(bench.wire.node(1), false, 0);
  bench.lanes.watch_link(bench.ab);
  REQUIRE_FALSE(bench.ab.give_up_timer.armed());
}
