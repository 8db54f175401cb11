// Entries of completion queues.
// SPDX-License-Identifier: BSD-3-Clause
#include "completion_queues.hpp"

#include <utility>

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Success is reported where it was asked for, failure always",
          "[soft][completion_queues]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::write, 100));
  task.submission.request.signalled = false;
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE(bench.host.completions.empty());
  bench.queues.report(bench.ab, task, CompletionStatus::flushed);
  REQUIRE(bench.host.completions.size() == 1);
  REQUIRE(bench.host.completions[0].id == 7);
  REQUIRE(bench.host.completions[0].bytes == 100);
  REQUIRE(bench.host.completions[0].queue_pair_number == bench.ab.number);
}

TEST_CASE("A receive entry is given back once, with the message's data if it succeeded",
          "[soft][completion_queues]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send_with_immediate, 100));
  task.submission.request.immediate = 9;
  task.receive.id = 55;
  for (const auto status : {CompletionStatus::success, CompletionStatus::flushed}) {
    task.holds_receive = true;
    bench.queues.report_receive(bench.ba, task, status);
    REQUIRE_FALSE(task.holds_receive);
    const Completion& seen = bench.host.completions.back();
    const bool good = status == CompletionStatus::success;
    REQUIRE(seen.id == 55);
    REQUIRE(seen.opcode == Opcode::receive);
    REQUIRE(seen.has_immediate == good);
    REQUIRE(seen.bytes == (good ? 100 : 0));
  }
}

TEST_CASE("Solicited messages and failures notify their client after their entry",
          "[soft][completion_queues]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send, 100));
  const auto receive = [&](Opcode opcode, bool solicited, CompletionStatus status) {
    task.submission.request.opcode = opcode;
    task.submission.request.solicited = solicited;
    bench.queues.report_receive(bench.ba, task, status);
    return std::exchange(bench.host.notified, {});
  };
  REQUIRE(receive(Opcode::send, false, CompletionStatus::success).empty());
  REQUIRE(receive(Opcode::write_with_immediate, true, CompletionStatus::success).empty());
  for (const Opcode opcode : {Opcode::send, Opcode::send_with_immediate}) {
    const auto notified = receive(opcode, true, CompletionStatus::success);
    REQUIRE(notified.size() == 1);
    REQUIRE(notified[0].client == bench.b.id);
    REQUIRE(notified[0].completions == bench.host.completions.size());
  }
  REQUIRE(receive(Opcode::send, false, CompletionStatus::flushed).size() == 1);

  // The poster is not woken by its own success, however it has marked the message.
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE(bench.host.notified.empty());
  bench.queues.report(bench.ab, task, CompletionStatus::retry_exceeded);
  REQUIRE(bench.host.notified.size() == 1);
  REQUIRE(bench.host.notified[0].client == bench.a.id);
  REQUIRE(bench.host.notified[0].completions == bench.host.completions.size());
}

TEST_CASE("The loss of an entry notifies its client once", "[soft][completion_queues]") {
  Bench bench;
  bench.host.completion_entries = 1;
  const Task& task = bench.add_task(bench.request(Opcode::write, 100));
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE(bench.host.notified.empty());
  for (int more = 0; more < 2; ++more) {
    bench.queues.report(bench.ab, task, CompletionStatus::success);
    REQUIRE(bench.host.notified.size() == 1);
  }
}

TEST_CASE("A full queue is noticed once and gets nothing more", "[soft][completion_queues]") {
  Bench bench;
  bench.host.completion_entries = 1;
  const Task& task = bench.add_task(bench.request(Opcode::write, 100));
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE_FALSE(bench.queues.has_overrun());
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE(bench.queues.has_overrun());
  REQUIRE(bench.completions_a.overrun);
  REQUIRE(bench.queues.take_overrun());
  REQUIRE_FALSE(bench.queues.take_overrun());
  bench.host.completion_entries = 100;
  bench.queues.report(bench.ab, task, CompletionStatus::success);
  REQUIRE(bench.host.completions.size() == 1);
}
