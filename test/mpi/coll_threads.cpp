// Field: barriers with MPI_THREAD_MULTIPLE.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll.hpp"

#include <thread>

using namespace overlap::test;

namespace {
[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

constexpr int threads = 4;
int rounds() { return static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 200)); }

template <class Body>
void in_threads(Body&& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : all) thread.join();
}

}  // namespace

TEST_CASE("Threads with communicators of their own") {
  Board board(threads);
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    const auto row = static_cast<std::size_t>(t);
    for (int i = 1; i <= rounds(); ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      board.enter(number, row);
      if (i % 2 == t % 2) {
        MPI_Barrier(comms[row]);
      } else {
        MPI_Request request;
        MPI_Ibarrier(comms[row], &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      if (!board.entered(number, row)) ++wrong;
    }
  });
  CHECK(wrong == 0);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

TEST_CASE("One thread starts, another one waits") {
  Board board;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(rounds()), MPI_REQUEST_NULL);
  std::atomic<std::size_t> started{0};
  std::atomic<int> wrong{0};
  std::thread waiter([&] {
    for (std::size_t i = 0; i < requests.size(); ++i) {
      while (started.load(std::memory_order_acquire) <= i) std::this_thread::yield();
      MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
      if (!board.entered(i + 1)) ++wrong;
    }
  });
  for (std::size_t i = 0; i < requests.size(); ++i) {
    board.enter(i + 1);
    MPI_Ibarrier(MPI_COMM_WORLD, &requests[i]);
    started.store(i + 1, std::memory_order_release);
  }
  waiter.join();
  CHECK(wrong == 0);
}

TEST_CASE("Threads that make and free communicators with barriers outstanding") {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  Board board(threads);
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    const auto row = static_cast<std::size_t>(t);
    for (int i = 1; i <= rounds() / 10; ++i) {
      const auto number = static_cast<std::uint64_t>(i);
      MPI_Comm own;
      MPI_Comm_dup(comms[row], &own);
      MPI_Request request;
      board.enter(number, row);
      MPI_Ibarrier(own, &request);
      MPI_Comm_free(&own);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!board.entered(number, row)) ++wrong;
    }
  });
  CHECK(wrong == 0);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

TEST_CASE("Barriers of one thread beside messages of others") {
  Board board;
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (int i = 1; i <= rounds(); ++i) {
      if (t == 0) {
        board.enter(static_cast<std::uint64_t>(i));
        MPI_Barrier(comms[0]);
        if (!board.entered(static_cast<std::uint64_t>(i))) ++wrong;
        continue;
      }
      const std::size_t n = i % 10 == 0 ? 100000 : 64;
      const Bytes out = pattern(n, static_cast<std::uint64_t>(i));
      Bytes in = empty(n);
      MPI_Sendrecv(out.data(), static_cast<int>(n), MPI_BYTE, (rank() + 1) % size(), t, in.data(),
                   static_cast<int>(n), MPI_BYTE, (rank() + size() - 1) % size(), t,
                   comms[static_cast<std::size_t>(t)], MPI_STATUS_IGNORE);
      if (!holds(in, n, static_cast<std::uint64_t>(i))) ++wrong;
    }
  });
  CHECK(wrong == 0);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}
