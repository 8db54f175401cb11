// The first messages between ranks, small and large, while connection requests get lost or come
// late. argv[1]: a file to wait for before the first message. argv[2]: large messages first, and
// nobody calls MPI until they are there. Right on every BTL, with argv[2] where a thread takes
// part.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <thread>
#include <vector>

namespace {

void wait_for(const char* file) {
  for (int i = 0; i < 1000 && !std::filesystem::exists(file); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

int value(int from, int to, int index) { return from * 1000003 + to * 1009 + index; }

/// Look at memory until the last number of each is there, without any call of MPI, for 10 seconds.
/// @returns  how many have not come
int watch(const std::vector<std::vector<int>>& in, int rank) {
  int missing = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  do {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes them
    missing = 0;
    for (std::size_t peer = 0; peer < in.size(); ++peer)
      missing += static_cast<int>(peer) != rank && in[peer].back() == -1 ? 1 : 0;
  } while (missing != 0 && std::chrono::steady_clock::now() < end);
  return missing;
}

/// All ranks send to all. @returns  numbers that are not what was sent, or not in time
int exchange(int rank, int size, int count, bool computes) {
  const auto ranks = static_cast<std::size_t>(size);
  const auto numbers = static_cast<std::size_t>(count);
  std::vector<std::vector<int>> in(ranks, std::vector<int>(numbers, -1)), out(in);
  std::vector<MPI_Request> requests(2 * ranks);
  for (int peer = 0; peer < size; ++peer) {
    const auto at = static_cast<std::size_t>(peer);
    for (int i = 0; i < count; ++i) out[at][static_cast<std::size_t>(i)] = value(rank, peer, i);
    MPI_Irecv(in[at].data(), count, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[2 * at]);
    MPI_Isend(out[at].data(), count, MPI_INT, peer, 1, MPI_COMM_WORLD, &requests[2 * at + 1]);
  }
  int wrong = computes ? watch(in, rank) : 0;
  MPI_Waitall(2 * size, requests.data(), MPI_STATUSES_IGNORE);
  for (int peer = 0; peer < size; ++peer) {
    for (int i = 0; i < count; ++i) {
      const int got = in[static_cast<std::size_t>(peer)][static_cast<std::size_t>(i)];
      wrong += got == value(peer, rank, i) ? 0 : 1;
    }
  }
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  int rank = 0, size = 0, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (argc > 1) wait_for(argv[1]);
  if (argc > 2) wrong += exchange(rank, size, 100000, true);
  for (const int count : {2, 100000}) wrong += exchange(rank, size, count, false);
  MPI_Allreduce(MPI_IN_PLACE, &wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) std::printf("%d numbers wrong\n", wrong);
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
