// Errors and ends.
// SPDX-License-Identifier: BSD-3-Clause
#include "failures.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("A refused task stops what is behind it and is known one latency later",
          "[soft][failures]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::write, 10));
  bench.ab.out.arrivals.push_back({5, 0, 10});
  bench.failures.refuse_task(bench.ab, task, CompletionStatus::remote_access_error);
  REQUIRE(bench.ab.failing);
  REQUIRE(bench.ab.out.arrivals.empty());
  REQUIRE(bench.ab.retire_timer.at == bench.ab.wire.latency_ns);
  REQUIRE(bench.ab.state == PairState::established);  // until its poster may know
}

TEST_CASE("A receive entry that does not suit fails both ends", "[soft][failures]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send, 10));
  task.receive.id = 3;
  task.holds_receive = true;
  bench.failures.fail_receive(bench.ab, task, CompletionStatus::length_error);
  REQUIRE(bench.host.completions.size() == 1);
  REQUIRE(bench.host.completions[0].id == 3);
  REQUIRE(bench.host.completions[0].status == CompletionStatus::length_error);
  REQUIRE(task.status == CompletionStatus::remote_error);
}

TEST_CASE("Giving up fails the oldest request without an answer", "[soft][failures]") {
  Bench bench;
  bench.add_task(bench.request(Opcode::write, 10)).done = true;
  bench.add_task(bench.request(Opcode::write, 10));
  bench.failures.give_up(bench.ab);
  REQUIRE(bench.ab.tasks[0].status == CompletionStatus::success);
  REQUIRE(bench.ab.tasks[1].status == CompletionStatus::retry_exceeded);
}

TEST_CASE("A broken connection completes everything once and tells the peer", "[soft][failures]") {
  Bench bench;
  Task& done = bench.add_task(bench.request(Opcode::write, 10));
  done.done = true;
  Task& waits = bench.add_task(bench.request(Opcode::send, 10));
  waits.holds_receive = true;
  bench.host.posted.emplace_back().request = bench.request(Opcode::write, 10);  // not fetched
  bench.failures.break_pair(bench.ab, "why");
  const auto& seen = bench.host.completions;
  REQUIRE(seen.size() == 4);
  REQUIRE(seen[0].opcode == Opcode::receive);  // its entry comes back
  REQUIRE(seen[0].status == CompletionStatus::flushed);
  REQUIRE(seen[1].status == CompletionStatus::success);
  REQUIRE(seen[2].status == CompletionStatus::flushed);
  REQUIRE(seen[3].status == CompletionStatus::flushed);
  REQUIRE(bench.ab.state == PairState::failed);
  REQUIRE(bench.ba.state == PairState::failed);
  REQUIRE(bench.ab.peer == nullptr);
  REQUIRE(bench.host.told.back().pair == bench.ba.number);
  REQUIRE(bench.host.told.back().event.kind == Event::Kind::peer_lost);
  REQUIRE(bench.host.told.back().event.why == "why");
}
