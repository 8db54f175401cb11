// The poster's side.
// SPDX-License-Identifier: BSD-3-Clause
#include "requester.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

namespace {

void post(Bench& bench, WorkRequest request, Time posted = 0) {
  Submission& submission = bench.host.posted.emplace_back();
  submission.request = request;
  submission.posted = posted;
}

}  // namespace

TEST_CASE("What was posted while the device slept starts when it was posted", "[soft][requester]") {
  Bench bench;
  bench.schedule.catch_up(1000);
  post(bench, bench.request(Opcode::write, 10), 500);  // before what has happened already
  post(bench, bench.request(Opcode::write, 10), 1500);
  post(bench, bench.request(Opcode::write, 10), 9999);  // a clock that is ahead
  bench.requester.fetch(bench.ab, 2000);
  REQUIRE(bench.ab.tasks[0].submission.posted == 1000);
  REQUIRE(bench.ab.tasks[1].submission.posted == 1500);
  REQUIRE(bench.ab.tasks[2].submission.posted == 2000);
}

TEST_CASE("One message is on the wire at a time", "[soft][requester]") {
  Bench bench;
  post(bench, bench.request(Opcode::write, 10));
  post(bench, bench.request(Opcode::write, 10));
  bench.requester.fetch(bench.ab, 0);
  bench.requester.begin(bench.ab);
  REQUIRE(bench.ab.started == 1);
  REQUIRE(bench.ab.out.flow.active());
}

TEST_CASE("A request that may not start waits for what it needs", "[soft][requester]") {
  struct Row {
    bool fenced;
    bool stalled;
    std::uint32_t outstanding_reads;
    Opcode opcode;
    bool starts;
  };
  constexpr Row rows[] = {
      {false, false, read_depth, Opcode::write, true},
      {false, false, read_depth, Opcode::read, false},
      {false, false, read_depth - 1, Opcode::read, true},
      {true, false, 1, Opcode::write, false},
      {true, false, 0, Opcode::write, true},
      {false, true, 0, Opcode::write, false},
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    Bench bench;
    WorkRequest request = bench.request(row.opcode, 10);
    request.fenced = row.fenced;
    post(bench, request);
    bench.ab.faults.stalled = row.stalled;
    bench.ab.outstanding_reads = row.outstanding_reads;
    bench.requester.fetch(bench.ab, 0);
    bench.requester.begin(bench.ab);
    REQUIRE(bench.ab.out.flow.active() == row.starts);
    const Condition* condition = row.starts    ? nullptr
                                 : row.stalled ? &bench.ab.resumed
                                               : &bench.ab.reads_ended;
    REQUIRE(bench.ab.start_waiter.on == condition);
  }
}

TEST_CASE("A bad local key fails the request before it is sent", "[soft][requester]") {
  Bench bench;
  post(bench, Bench::request(Opcode::write, 10, 0, bench.key_b));
  bench.requester.fetch(bench.ab, 0);
  bench.requester.begin(bench.ab);
  REQUIRE_FALSE(bench.ab.out.flow.active());
  REQUIRE(bench.ab.tasks[0].status == CompletionStatus::protection_error);
  REQUIRE(bench.ab.failing);
}
