// The responder's checks.
// SPDX-License-Identifier: BSD-3-Clause
#include "admission.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("A refused request is not executed", "[soft][admission]") {
  Bench bench;
  Task& task = bench.add_task(Bench::request(Opcode::write, 10, bench.key_a, 0));
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::failed);
  REQUIRE(task.status == CompletionStatus::remote_access_error);
}

TEST_CASE("A planted failure hits one request", "[soft][admission]") {
  Bench bench;
  bench.ab.faults.fail_next = CompletionStatus::retry_exceeded;
  Task& first = bench.add_task(bench.request(Opcode::write, 10));
  REQUIRE(bench.admission.admit(bench.ab, first) == Admitted::failed);
  REQUIRE(first.status == CompletionStatus::retry_exceeded);
  Task& second = bench.add_task(bench.request(Opcode::write, 10));
  REQUIRE(bench.admission.admit(bench.ab, second) == Admitted::granted);
}

TEST_CASE("A message without receive entry waits for one, at most the sender's tries",
          "[soft][admission]") {
  Bench bench;
  bench.a.retry.receive_retries = 2;
  bench.b.retry.receive_retry_ns = 1000;
  const Time between = 1000 + 2 * 5000;
  Task& task = bench.add_task(bench.request(Opcode::send, 10));
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::waits);
  REQUIRE(bench.ab.arrive_waiter.on == &bench.receives_b.posted);
  REQUIRE(bench.ab.again_timer.at == 2 * between);
  bench.schedule.catch_up(1);
  bench.admission.try_again_later(bench.ab);
  REQUIRE(bench.ab.again_timer.at == between);
  bench.schedule.catch_up(2 * between);
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::failed);
  REQUIRE(task.status == CompletionStatus::receive_not_ready_exceeded);
}

TEST_CASE("A receive entry is taken once it is there", "[soft][admission]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send, 10));
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::waits);
  REQUIRE_FALSE(bench.ab.again_timer.armed());  // for ever
  bench.host.receives.push_back({3, Bench::base, 10, bench.key_b});
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::granted);
  REQUIRE(task.holds_receive);
  REQUIRE(bench.ab.not_ready_since == never);
}

TEST_CASE("An atomic is executed when it is admitted", "[soft][admission]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::fetch_add, 8));
  bench.host.answer = Copied::target_gone;
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::waits);
  bench.host.answer = Copied::done;
  REQUIRE(bench.admission.admit(bench.ab, task) == Admitted::granted);
  REQUIRE(task.old_value == 41);
}
