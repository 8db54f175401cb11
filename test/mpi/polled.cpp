// The polling thread of examples/bench: messages of any PML move while nobody calls MPI, and the
// program gets the thread level that it has asked for. Run with libprogressthread.so preloaded.
// SPDX-License-Identifier: BSD-3-Clause
#include "scene.hpp"

using namespace overlap::test;

TEST_CASE("the program gets the level that it has asked for") {
  int level = -1;
  MPI_Query_thread(&level);
  CHECK(level == MPI_THREAD_SINGLE);
}

TEST_CASE("a message moves while both ranks compute") {
  constexpr int bytes = 24 << 20;  // more than two sockets take in while nobody reads
  Steps steps;
  Bytes data = rank() == 0 ? pattern(bytes, 1) : empty(bytes);
  const Bytes expected = pattern(bytes, 1);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank() == 0) {
    MPI_Isend(data.data(), bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &request);
    steps.wait_for(1);  // outside MPI until all is there
  } else {
    MPI_Irecv(data.data(), bytes, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &request);
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    bool there = false;
    while (!there && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(microseconds(200));
      std::atomic_signal_fence(std::memory_order_seq_cst);  // somebody else writes it
      there = data == expected;
    }
    CHECK(there);
    steps.reach(1);
  }
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}
