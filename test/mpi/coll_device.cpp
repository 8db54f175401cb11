// P6.5: barriers that a device's management queues carry out end without any call of MPI by the
// other ranks. Only with coll/mq over the software device.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

#include <thread>
#include <vector>

using namespace overlap::test;

namespace {

/// No call of MPI in here.
template <class Condition>
void sleep_until(Condition&& reached) {
  while (!reached()) std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace

TEST_CASE("The device makes barriers, blocking and not") {
  if (!device_is_used() || size() < 2) return;
  const MqCount made("device_barriers");
  const unsigned long long before = made.value();
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  CHECK(made.value() == before + 2);
}

// Each rank in turn is the only one that calls MPI after all have entered: what the others' tasks
// still have to do is done by their devices alone. Driven by processors this would never end.
TEST_CASE("Barriers end for one rank while no other calls MPI") {
  if (!device_is_used() || size() < 2) return;
  const int outstanding = GENERATE(1, 3, 40);
  Board entered, left;
  MPI_Barrier(MPI_COMM_WORLD);  // connections are made in MPI calls
  std::vector<MPI_Request> requests(static_cast<std::size_t>(outstanding));
  std::uint64_t round = 0;
  for (int repeated = 0; repeated < 5; ++repeated) {
    for (int first = 0; first < size(); ++first) {
      ++round;
      for (MPI_Request& each : requests) MPI_Ibarrier(MPI_COMM_WORLD, &each);
      entered.enter(round);
      sleep_until([&] { return entered.entered(round); });
      const std::vector<int> only{first};
      if (rank() != first) sleep_until([&] { return left.entered(round, 0, only); });
      MPI_Waitall(outstanding, requests.data(), MPI_STATUSES_IGNORE);
      left.enter(round);
    }
  }
}

TEST_CASE("Two communicators do not wait for each other on the device") {
  if (!device_is_used() || size() < 2) return;
  MPI_Comm other;
  MPI_Comm_dup(MPI_COMM_WORLD, &other);
  MPI_Barrier(other);
  Board board;
  MPI_Request late = MPI_REQUEST_NULL;
  if (rank() != 0) MPI_Ibarrier(MPI_COMM_WORLD, &late);
  for (int i = 0; i < 20; ++i) MPI_Barrier(other);
  if (rank() != 0) {
    int done = 1;
    MPI_Test(&late, &done, MPI_STATUS_IGNORE);
    CHECK(done == 0);
  }
  Board::meet(other);
  if (rank() == 0) MPI_Ibarrier(MPI_COMM_WORLD, &late);
  MPI_Wait(&late, MPI_STATUS_IGNORE);
  MPI_Comm_free(&other);
}

// For test/ring/faults.sh: somebody ends the device, or a rank.
TEST_CASE("Barriers until the job is ended") {
  const char* const seconds = std::getenv("OVERLAP_TEST_BARRIER_SECONDS");
  if (seconds == nullptr || !device_is_used()) return;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::atoi(seconds));
  int go_on = 1;
  while (go_on != 0) {
    for (int i = 0; i < 100; ++i) MPI_Barrier(MPI_COMM_WORLD);
    go_on = std::chrono::steady_clock::now() < end ? 1 : 0;
    MPI_Bcast(&go_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
  }
}
