// Field: MPI_THREAD_MULTIPLE: several threads with their own tags, small and large messages, waits,
// tests and probes.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <ctime>
#include <thread>

using namespace overlap::test;

namespace {
[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);
}

// Two threads in libevent's loop at a time end in its "reentrant invocation", and lose events.
TEST_CASE("opal_progress turns the event loop in no thread") {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE || !over_pml("speculative")) return;
  const auto set_flag =
      reinterpret_cast<int (*)(int)>(dlsym(RTLD_DEFAULT, "opal_progress_set_event_flag"));
  REQUIRE(set_flag != nullptr);
  int there = 0;
  // The runtime may have set it anew.
  MPI_Iprobe(MPI_ANY_SOURCE, 77, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
  CHECK(there == 0);
  CHECK(set_flag(0) == 0);
}

TEST_CASE("Field: threads with their own tags") {
  if (!paired()) return;
  constexpr int threads = 4;
  const int rounds = static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 150));
  std::atomic<int> wrong{0};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      std::mt19937_64 random(static_cast<unsigned>(t));  // the same sizes on both sides
      for (int round = 0; round < rounds; ++round) {
        const std::size_t n = random() % 2 == 0 ? random() % 4000 : random() % 300000;
        const std::uint64_t out_seed = rank() * 1000000 + t * 10000 + round,
                            in_seed = partner() * 1000000 + t * 10000 + round;
        const Bytes out = pattern(n, out_seed);
        Bytes in = empty(n);
        const int bytes = static_cast<int>(n);
        MPI_Request requests[2];
        int done = 0;
        switch (round % 3) {
          case 0:
            MPI_Irecv(in.data(), bytes, MPI_BYTE, partner(), t, MPI_COMM_WORLD, &requests[0]);
            MPI_Isend(out.data(), bytes, MPI_BYTE, partner(), t, MPI_COMM_WORLD, &requests[1]);
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
            break;
          case 1:
            MPI_Isend(out.data(), bytes, MPI_BYTE, partner(), t, MPI_COMM_WORLD, &requests[1]);
            MPI_Irecv(in.data(), bytes, MPI_BYTE, partner(), t, MPI_COMM_WORLD, &requests[0]);
            while (done == 0) MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE);
            break;
          default: {
            MPI_Message message = MPI_MESSAGE_NULL;
            MPI_Status status{};
            MPI_Isend(out.data(), bytes, MPI_BYTE, partner(), t, MPI_COMM_WORLD, &requests[1]);
            MPI_Mprobe(partner(), t, MPI_COMM_WORLD, &message, &status);
            if (count_of(status) != bytes) ++wrong;
            MPI_Mrecv(in.data(), bytes, MPI_BYTE, &message, MPI_STATUS_IGNORE);
            MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
          }
        }
        if (!holds(in, n, in_seed)) ++wrong;
      }
    });
  }
  for (std::thread& thread : all) thread.join();
  CHECK(wrong == 0);
}

namespace {

/// Wait until a thread has worked for a while: its next call of MPI polls, and begins in less.
void wait_until_busy(std::thread& thread) {
  clockid_t clock{};
  REQUIRE(pthread_getcpuclockid(thread.native_handle(), &clock) == 0);
  const auto used_ns = [clock] {
    timespec used{};
    clock_gettime(clock, &used);
    return used.tv_sec * 1'000'000'000L + used.tv_nsec;
  };
  const long begin_ns = used_ns();
  while (used_ns() < begin_ns + 200'000) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

TEST_CASE("A communicator is freed while another thread receives on it") {
  int provided = MPI_THREAD_SINGLE;
  MPI_Query_thread(&provided);
  if (provided < MPI_THREAD_MULTIPLE || size() < 2) return;
  constexpr int n = 8000;
  for (int turn = 0; turn < 20; ++turn) {
    MPI_Comm comm = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    const MPI_Comm copy = comm;
    if (receiver()) {
      Bytes in = empty(n);
      std::atomic<bool> calls{false};
      std::thread other([&in, &calls, copy, source = partner()] {
        calls = true;
        MPI_Recv(in.data(), n, MPI_BYTE, source, 9, copy, MPI_STATUS_IGNORE);
      });
      while (!calls) std::this_thread::yield();
      wait_until_busy(other);  // in MPI_Recv
      MPI_Comm_free(&comm);
      MPI_Send(nullptr, 0, MPI_BYTE, partner(), 1, MPI_COMM_WORLD);
      other.join();
      CHECK(holds(in, n, turn));
    } else {
      if (sender()) {
        MPI_Recv(nullptr, 0, MPI_BYTE, partner(), 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        const Bytes data = pattern(n, turn);
        MPI_Send(data.data(), n, MPI_BYTE, partner(), 9, comm);
      }
      MPI_Comm_free(&comm);
    }
  }
}
