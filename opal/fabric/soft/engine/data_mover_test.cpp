// Copies of one piece.
// SPDX-License-Identifier: BSD-3-Clause
#include "data_mover.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Pieces end where bytes or the host's limit end", "[soft][data_mover]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::write, Host::piece_bytes + 10));
  REQUIRE(bench.mover.move_piece(bench.ab, task).kind == Moved::Kind::done);
  REQUIRE(bench.host.copies.empty());  // nothing is available
  task.available_bytes = task.total_bytes;
  REQUIRE(bench.mover.move_piece(bench.ab, task).kind == Moved::Kind::done);
  REQUIRE(bench.mover.move_piece(bench.ab, task).kind == Moved::Kind::done);
  REQUIRE(bench.host.copies.size() == 2);
  REQUIRE(bench.host.copies[0].bytes == Host::piece_bytes);
  REQUIRE_FALSE(bench.host.copies[0].last);
  REQUIRE(bench.host.copies[1].bytes == 10);
  REQUIRE(bench.host.copies[1].last);
  REQUIRE(task.moved_bytes == task.total_bytes);
}

TEST_CASE("A failed copy names the end that failed", "[soft][data_mover]") {
  struct Row {
    Opcode opcode;
    Copied answer;
    Moved::Kind kind;
    CompletionStatus fault;
  };
  constexpr auto own = CompletionStatus::protection_error;
  constexpr auto peers = CompletionStatus::remote_access_error;
  constexpr Row rows[] = {
      {Opcode::write, Copied::source_failed, Moved::Kind::failed, own},
      {Opcode::write, Copied::target_failed, Moved::Kind::failed, peers},
      {Opcode::read, Copied::source_failed, Moved::Kind::failed, peers},
      {Opcode::read, Copied::target_failed, Moved::Kind::failed, own},
      {Opcode::write, Copied::source_gone, Moved::Kind::held, CompletionStatus::success},
      {Opcode::read, Copied::target_gone, Moved::Kind::held, CompletionStatus::success},
  };
  for (const Row& row : rows) {
    CAPTURE(&row - rows);
    Bench bench;
    bench.host.answer = row.answer;
    Task& task = bench.add_task(bench.request(row.opcode, 100));
    task.available_bytes = 100;
    const Moved moved = bench.mover.move_piece(bench.ab, task);
    REQUIRE(moved.kind == row.kind);
    REQUIRE(moved.fault == row.fault);
    REQUIRE(task.moved_bytes == 0);
    REQUIRE(bench.host.copies[0].to == (row.opcode == Opcode::read ? bench.a.id : bench.b.id));
  }
}

TEST_CASE("An atomic brings the old value", "[soft][data_mover]") {
  Bench bench;
  Task& task = bench.add_task(bench.request(Opcode::fetch_add, 8));
  REQUIRE(bench.mover.move_atomic(bench.ab, task).kind == Moved::Kind::done);
  REQUIRE(task.old_value == 41);
  bench.host.answer = Copied::target_failed;
  REQUIRE(bench.mover.move_atomic(bench.ab, task).fault == CompletionStatus::remote_access_error);
}
