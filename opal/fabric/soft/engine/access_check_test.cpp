// Keys, bounds, rights.
// SPDX-License-Identifier: BSD-3-Clause
#include "access_check.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("What a request may touch", "[soft][access_check]") {
  struct Row {
    Opcode opcode;
    std::uint32_t bytes;
    unsigned local;   // rights of the poster's region
    unsigned remote;  // of the responder's
    CompletionStatus at_poster;
    CompletionStatus at_responder;
  };
  constexpr auto good = CompletionStatus::success;
  constexpr auto protection = CompletionStatus::protection_error;
  constexpr auto refused = CompletionStatus::remote_access_error;
  constexpr Row rows[] = {
      {Opcode::write, 100, 0, access::remote_write, good, good},
      {Opcode::write, 100, 0, access::remote_read, good, refused},
      {Opcode::write, 0, 0, 0, good, good},
      {Opcode::read, 100, access::local_write, access::remote_read, good, good},
      {Opcode::read, 100, 0, access::remote_read, protection, good},
      {Opcode::read, 100, access::local_write, access::remote_write, good, refused},
      {Opcode::send, 100, 0, 0, good, good},
      {Opcode::fetch_add, 8, access::local_write, access::remote_atomic, good, good},
      {Opcode::fetch_add, 8, access::local_write, access::remote_write, good, refused},
      {Opcode::fetch_add, 4, access::local_write, access::remote_atomic,
       CompletionStatus::length_error, good},
      {Opcode::write, 1U << 21U, 0, access::any, protection, refused},  // past the region's end
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    Bench bench;
    const auto local = bench.regions.add({bench.a.id, Bench::base, Bench::size, row.local, {}});
    const auto remote = bench.regions.add({bench.b.id, Bench::base, Bench::size, row.remote, {}});
    const Task& task = bench.add_task(Bench::request(row.opcode, row.bytes, local, remote));
    REQUIRE(bench.access.check_local(bench.ab, task) == row.at_poster);
    REQUIRE(bench.access.check_remote(bench.ab, task) == row.at_responder);
  }
}

TEST_CASE("The peer's queue pair limits rights, too, and atomics are aligned",
          "[soft][access_check]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::fetch_add, 8));
  REQUIRE(bench.access.check_remote(bench.ab, task) == CompletionStatus::success);
  task.submission.request.remote_address += 4;
  REQUIRE(bench.access.check_remote(bench.ab, task) == CompletionStatus::remote_access_error);
  task.submission.request.remote_address -= 4;
  bench.ba.remote_rights = access::remote_write;
  REQUIRE(bench.access.check_remote(bench.ab, task) == CompletionStatus::remote_access_error);
}

TEST_CASE("A message fits into its receive entry or not", "[soft][access_check]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::send, 100));
  task.receive = {1, Bench::base, 100, bench.key_b};
  REQUIRE(bench.access.check_receive(bench.ba, task) == CompletionStatus::success);
  task.receive.bytes = 99;
  REQUIRE(bench.access.check_receive(bench.ba, task) == CompletionStatus::length_error);
  task.receive = {1, Bench::base, 100, bench.key_a};  // another client's
  REQUIRE(bench.access.check_receive(bench.ba, task) == CompletionStatus::protection_error);
}

TEST_CASE("The next bytes continue in the right piece of a gather list", "[soft][access_check]") {
  Bench bench;
  WorkRequest request = bench.request(Opcode::write, 100);
  request.gather_count = 2;
  request.gather[1] = {reinterpret_cast<const void*>(Bench::base + 5000), 50, bench.key_a};
  Task& task = bench.add_task(request);
  task.total_bytes = 150;
  task.moved_bytes = 90;
  const auto local = bench.access.find_local(bench.ab, task, 20);
  REQUIRE(local.has_value());
  REQUIRE(local->count == 2);
  REQUIRE(local->pieces[0].address == Bench::base + 90);
  REQUIRE(local->pieces[0].bytes == 10);
  REQUIRE(local->pieces[1].address == Bench::base + 5000);
  REQUIRE(local->pieces[1].bytes == 10);
  const auto remote = bench.access.find_remote(bench.ab, task, 20);
  REQUIRE(remote->address == Bench::base + 90);
  bench.regions.remove(bench.key_a);
  REQUIRE_FALSE(bench.access.find_local(bench.ab, task, 20).has_value());
  bench.regions.remove(bench.key_b);
  REQUIRE_FALSE(bench.access.find_remote(bench.ab, task, 20).has_value());
}
