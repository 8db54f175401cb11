// Under a limit on locked memory (`ulimit -l`), most of which buffers of large messages hold that
// stay registered for their next use. Right on every BTL, with every limit.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

namespace {

/// Each of them is sent from at rank 0 and received into at rank 1. They stay registered.
std::vector<Bytes> exchange_buffers(std::size_t count, std::size_t bytes) {
  std::vector<Bytes> buffers;
  for (std::size_t i = 0; i < count; ++i) {
    if (sender()) {
      buffers.push_back(pattern(bytes, i));
      MPI_Send(buffers.back().data(), static_cast<int>(bytes), MPI_BYTE, partner(), 0,
               MPI_COMM_WORLD);
    } else {
      buffers.emplace_back(bytes);
      MPI_Recv(buffers.back().data(), static_cast<int>(bytes), MPI_BYTE, partner(), 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      REQUIRE(first_wrong(buffers.back().data(), bytes, i) == bytes);
    }
  }
  return buffers;
}

/// With locks, which are atomic operations without a result on some components.
void count_in_window() {
  long long* word = nullptr;
  MPI_Win window;
  MPI_Win_allocate(sizeof *word, sizeof *word, MPI_INFO_NULL, MPI_COMM_WORLD, &word, &window);
  *word = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  const long long one = 1;
  for (int i = 0; i < 10; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Accumulate(&one, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, MPI_SUM, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window);
    CHECK(*word == 10LL * size());
    MPI_Win_unlock(0, window);
  }
  MPI_Win_free(&window);
}

}  // namespace

TEST_CASE("registrations that are kept for the next time make room for others") {
  REQUIRE(size() % 2 == 0);
  const auto buffers = exchange_buffers(16, std::size_t{1} << 20U);
  count_in_window();
}
