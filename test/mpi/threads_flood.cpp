// MPI_THREAD_MULTIPLE under pressure: floods beside blocking sends, communicators that come and go,
// cancelled receives, callbacks of collectives that communicate.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <atomic>
#include <thread>

using namespace overlap::test;

namespace {

[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

constexpr int bytes = 4000;

}  // namespace

TEST_CASE("A thread's flood does not keep another thread's blocking sends from ending") {
  if (!paired()) return;
  constexpr int flood = 4000, blocking = 100;
  std::atomic<int> wrong{0};
  const Bytes data = pattern(bytes, 1);
  std::thread first([&] {
    std::vector<MPI_Request> requests(flood);
    if (sender()) {
      for (MPI_Request& request : requests)
        MPI_Isend(data.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, &request);
      MPI_Waitall(flood, requests.data(), MPI_STATUSES_IGNORE);
      return;
    }
    Bytes in = empty(bytes);
    for (int i = 0; i < flood; ++i) {
      MPI_Recv(in.data(), bytes, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (!holds(in, bytes, 1)) ++wrong;
    }
  });
  std::thread second([&] {
    Bytes in = empty(bytes);
    for (int i = 0; i < blocking; ++i) {
      if (sender()) {
        MPI_Send(data.data(), bytes, MPI_BYTE, partner(), 2, MPI_COMM_WORLD);
      } else {
        MPI_Recv(in.data(), bytes, MPI_BYTE, partner(), 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (!holds(in, bytes, 1)) ++wrong;
      }
    }
  });
  first.join();
  second.join();
  CHECK(wrong == 0);
}

TEST_CASE("Threads with communicators of their own send, free and make them again") {
  constexpr int threads = 3, turns = 12;
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int turn = 0; turn < turns; ++turn) {
        MPI_Comm comm;
        MPI_Comm_dup(comms[t], &comm);
        if (paired()) {
          const std::uint64_t seed = static_cast<std::uint64_t>(1000 * t + turn);
          const std::size_t n = turn % 3 == 0 ? 100000 : 1500;
          const Bytes out = pattern(n, seed + static_cast<std::uint64_t>(rank()));
          Bytes in = empty(n), never = empty(50000);
          MPI_Request requests[3];
          const int count = static_cast<int>(n);
          MPI_Irecv(in.data(), count, MPI_BYTE, partner(), 5, comm, &requests[0]);
          MPI_Irecv(never.data(), 50000, MPI_BYTE, partner(), 6, comm, &requests[2]);
          MPI_Isend(out.data(), count, MPI_BYTE, partner(), 5, comm, &requests[1]);
          MPI_Cancel(&requests[2]);
          MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
          if (!holds(in, n, seed + static_cast<std::uint64_t>(partner()))) ++wrong;
          if (!holds(never, 0, 0)) ++wrong;
        }
        MPI_Comm_free(&comm);
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  CHECK(wrong == 0);
}

TEST_CASE("Non-blocking collectives of several threads beside point-to-point") {
  constexpr int threads = 3, turns = 40;
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      for (int turn = 0; turn < turns; ++turn) {
        const std::size_t n = turn % 2 == 0 ? 64 : 20000;
        std::vector<int> value(n, rank() == turn % size() ? turn : -1);
        const std::vector<int> one(n, 1);
        std::vector<int> sum(n, 0);
        MPI_Request requests[2];
        MPI_Ibcast(value.data(), static_cast<int>(n), MPI_INT, turn % size(), comms[t],
                   &requests[0]);
        MPI_Ireduce(one.data(), sum.data(), static_cast<int>(n), MPI_INT, MPI_SUM, 0, comms[t],
                    &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        for (const int each : value) wrong += each != turn;
        if (rank() == 0)
          for (const int each : sum) wrong += each != size();
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
  CHECK(wrong == 0);
}
