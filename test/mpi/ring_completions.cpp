// More signalled requests than one completion queue holds, and nobody who takes the completions.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

TEST_CASE("one rank posts to all others, then computes while everything completes") {
  constexpr std::size_t messages = 130, bytes = 32768;
  const int peers = size() - 1;
  std::vector<Bytes> memory;
  std::vector<MPI_Request> requests;
  const auto seed = [](int peer, std::size_t i) {
    return static_cast<std::uint64_t>(peer) * 1000 + i;
  };
  if (rank() != 0) {
    for (std::size_t i = 0; i < messages; ++i) {
      memory.push_back(empty(bytes));
      MPI_Irecv(memory.back().data(), bytes, MPI_BYTE, 0, 7, MPI_COMM_WORLD,
                &requests.emplace_back());
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);  // the receivers are early
  if (rank() == 0) {
    poke(std::chrono::milliseconds(20));
    for (int peer = 1; peer <= peers; ++peer) {
      for (std::size_t i = 0; i < messages; ++i) memory.push_back(pattern(bytes, seed(peer, i)));
    }
    for (std::size_t i = 0; i < messages; ++i) {
      for (int peer = 1; peer <= peers; ++peer) {
        MPI_Isend(memory[static_cast<std::size_t>(peer - 1) * messages + i].data(), bytes, MPI_BYTE,
                  peer, 7, MPI_COMM_WORLD, &requests.emplace_back());
      }
    }
    compute(std::chrono::milliseconds(300));
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t i = 0; rank() != 0 && i < messages; ++i)
    REQUIRE(first_wrong(memory[i].data(), bytes, seed(rank(), i)) == bytes);
}
