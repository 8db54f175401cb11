// P4.10: a barrier that has been started ends while its ranks compute; nobody calls MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"
#include "scene.hpp"

using namespace overlap::test;

namespace {

/// @returns  false when it was not reached within 30 seconds; no call of MPI that progresses
template <class Condition>
bool sleep_until(Condition&& reached) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!reached()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return true;
}

/// Start with this; rank 0 is the last, when all others sleep.
template <class Start>
void start_late(Board& board, std::uint64_t round, Start&& start) {
  if (rank() == 0) {
    std::vector<int> others;
    for (int r = 1; r < size(); ++r) others.push_back(r);
    REQUIRE(sleep_until([&] { return board.entered(round, 0, others); }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  start();
  board.enter(round);
}

}  // namespace

TEST_CASE("Barriers end while all ranks compute") {
  if (!mq_is_chosen() || !interrupts() || size() < 2) return;
  Board board;
  const MqCount ended("thread_ended");
  for (int i = 0; i < 10; ++i) MPI_Barrier(MPI_COMM_WORLD);  // connections are made in MPI calls
  for (std::uint64_t round = 1; round <= 20; ++round) {
    MPI_Request request;
    const unsigned long long before = ended.value();
    start_late(board, round, [&] { MPI_Ibarrier(MPI_COMM_WORLD, &request); });
    if (rank() != 0) REQUIRE(sleep_until([&] { return ended.value() == before + 1; }));
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    REQUIRE(board.entered(round - 1));
  }
}

TEST_CASE("Several of them, on communicators of their own") {
  if (!mq_is_chosen() || !interrupts() || size() < 2) return;
  Board board;
  const MqCount ended("thread_ended");
  std::vector<MPI_Comm> comms(5);
  std::vector<MPI_Request> requests(comms.size());
  for (MPI_Comm& each : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &each);
    MPI_Barrier(each);
  }
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const unsigned long long before = ended.value();
    start_late(board, round, [&] {
      for (std::size_t i = 0; i < comms.size(); ++i) MPI_Ibarrier(comms[i], &requests[i]);
    });
    if (rank() != 0) REQUIRE(sleep_until([&] { return ended.value() == before + comms.size(); }));
    MPI_Waitall(static_cast<int>(comms.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  for (MPI_Comm& each : comms) MPI_Comm_free(&each);
}
