// Processes of other nodes are met by two threads at once: a window of osc/rdma asks Open MPI for
// all of them, and messages go to them for the first time. test/ring runs it over host names of its
// own, since processes of one node know each other from MPI_Init.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <unistd.h>

#include <chrono>
#include <thread>

using namespace overlap::test;

namespace {

[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
int world_size() {
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}

/// To all others, the next one first; from all others, as they come.
/// @returns  the sum of the ranks that have sent
int exchange_ranks(int tag) {
  int rank = world_rank();
  const int ranks = world_size();
  std::vector<MPI_Request> sends;
  for (int step = 1; step < ranks; ++step)
    MPI_Isend(&rank, 1, MPI_INT, (rank + step) % ranks, tag, MPI_COMM_WORLD,
              &sends.emplace_back(MPI_REQUEST_NULL));
  int sum = 0;
  for (int step = 1; step < ranks; ++step) {
    int other = 0;
    MPI_Recv(&other, 1, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    sum += other;
  }
  MPI_Waitall(static_cast<int>(sends.size()), sends.data(), MPI_STATUSES_IGNORE);
  return sum;
}

/// Add one to the counter of each other process.
void count_at_all(MPI_Win win) {
  const int ranks = world_size();
  const long long one = 1;
  long long before = 0;
  MPI_Win_lock_all(0, win);
  for (int step = 1; step < ranks; ++step) {
    const int target = (world_rank() + step) % ranks;
    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, target, 0, MPI_SUM, win);
    MPI_Win_flush(target, win);
  }
  MPI_Win_unlock_all(win);
}

}  // namespace

TEST_CASE("A window and messages meet the processes of other nodes at once") {
  const int ranks = world_size();
  int sum = 0;
  std::thread sender([&sum] {
    // Somewhere while the other thread makes the window, elsewhere in each process.
    std::this_thread::sleep_for(std::chrono::microseconds((getpid() * 2654435761U >> 8) % 2000));
    sum = exchange_ranks(5);
  });
  long long counter = 0;
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(&counter, sizeof counter, sizeof counter, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  count_at_all(win);
  sender.join();
  CHECK(sum == ranks * (ranks - 1) / 2 - world_rank());
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(counter == ranks - 1);
  MPI_Win_free(&win);
}
