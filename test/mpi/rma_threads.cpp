// Field: one-sided communication with MPI_THREAD_MULTIPLE.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

#include <atomic>
#include <memory>
#include <thread>

using namespace overlap::test;

namespace {
[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

constexpr int threads = 4;
int rounds() { return static_cast<int>(setting("OVERLAP_TEST_ROUNDS", 60)); }

template <class Body>
void in_threads(Body&& body) {
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) all.emplace_back([&body, t] { body(t); });
  for (std::thread& thread : all) thread.join();
}

}  // namespace

TEST_CASE("Threads with windows of their own: fences") {
  std::vector<MPI_Comm> comms(threads);
  std::vector<std::unique_ptr<Array<Word>>> windows;
  for (MPI_Comm& comm : comms) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    windows.push_back(std::make_unique<Array<Word>>(2000, -1, Kind::create, comm));
  }
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    Array<Word>& window = *windows[static_cast<std::size_t>(t)];
    std::mt19937 random(static_cast<unsigned>(t));  // the same at every rank
    for (int round = 0; round < rounds(); ++round) {
      const int count = 1 + static_cast<int>(random() % 1999);
      const std::vector<Word> out(static_cast<std::size_t>(count), 1000 * round + 10 * t + rank());
      MPI_Win_fence(0, window.win);
      MPI_Put(out.data(), count, MPI_INT64_T, window.right(), 0, count, MPI_INT64_T, window.win);
      MPI_Win_fence(0, window.win);
      const Word expected = 1000 * round + 10 * t + window.left();
      if (std::count(window.data(), window.data() + count, expected) != count) ++wrong;
    }
  });
  CHECK(wrong == 0);
  windows.clear();
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}

TEST_CASE("Threads with windows of their own: locks") {
  std::vector<std::unique_ptr<Array<Word>>> windows;
  for (int t = 0; t < threads; ++t) windows.push_back(std::make_unique<Array<Word>>(1));
  in_threads([&](int t) {
    Array<Word>& window = *windows[static_cast<std::size_t>(t)];
    for (int round = 0; round < rounds(); ++round) {
      Word value = -1;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, t % size(), 0, window.win);
      get(window, value, t % size(), 0);
      MPI_Win_flush(t % size(), window.win);
      ++value;
      put(window, value, t % size(), 0);
      MPI_Win_unlock(t % size(), window.win);
    }
  });
  MPI_Barrier(MPI_COMM_WORLD);
  for (int t = 0; t < threads; ++t) {
    if (t % size() == rank())
      CHECK(own(*windows[static_cast<std::size_t>(t)]) == rounds() * static_cast<Word>(size()));
  }
}

TEST_CASE("A thread that waits for a lock keeps no other one from its own") {
  if (size() < 2) return;
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    const Word value = 5;
    const auto write = [&](int to) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
      put(window, value, to, 0);
      MPI_Win_unlock(to, window.win);
    };
    if (rank() == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) {
      std::thread waits([&] { write(1); });
      std::this_thread::sleep_for(std::chrono::milliseconds(50));  // most likely it does
      write(0);
      MPI_Send(nullptr, 0, MPI_INT, 1, 3, MPI_COMM_WORLD);
      waits.join();
    } else if (rank() == 1) {
      MPI_Recv(nullptr, 0, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Win_unlock(1, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() < 2) CHECK(own(window) == value);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Threads on one window under lock_all: puts, gets, flushes of their own part") {
  constexpr std::size_t part = 70000;
  Window window(threads * part);
  std::atomic<int> wrong{0};
  MPI_Win_lock_all(0, window.win);
  in_threads([&](int t) {
    std::mt19937 random(static_cast<unsigned>(t));
    const int to = window.right();
    for (int round = 0; round < rounds(); ++round) {
      const std::size_t bytes = round % 3 == 0 ? random() % part : random() % 2000;
      const int n = static_cast<int>(bytes);
      const std::uint64_t seed = static_cast<std::uint64_t>(1000 * rank() + 100 * t + round);
      const auto at = static_cast<MPI_Aint>(part) * t;
      const Bytes out = pattern(bytes, seed);
      Bytes in = empty(bytes);
      MPI_Put(out.data(), n, MPI_BYTE, to, at, n, MPI_BYTE, window.win);
      if (round % 2 == 0)
        MPI_Win_flush(to, window.win);
      else
        MPI_Win_flush_all(window.win);
      MPI_Request request = MPI_REQUEST_NULL;
      MPI_Rget(in.data(), n, MPI_BYTE, to, at, n, MPI_BYTE, window.win, &request);
      MPI_Wait(&request, MPI_STATUS_IGNORE);
      if (!holds(in, bytes, seed)) ++wrong;
    }
  });
  MPI_Win_unlock_all(window.win);
  CHECK(wrong == 0);
}

TEST_CASE("Threads on one window under lock_all: numbers are handed out once") {
  Array<Word> window(1, 0);
  std::atomic<int> wrong{0};
  std::atomic<Word> numbers{0};
  MPI_Win_lock_all(0, window.win);
  in_threads([&](int) {
    const Word one = 1;
    Word last = -1;
    for (int round = 0; round < rounds(); ++round) {
      Word before = -1;
      MPI_Fetch_and_op(&one, &before, MPI_INT64_T, 0, window.index(0, 0), MPI_SUM, window.win);
      MPI_Win_flush(0, window.win);
      if (before <= last) ++wrong;
      last = before;
      numbers += before;
    }
  });
  MPI_Win_unlock_all(window.win);
  CHECK(wrong == 0);
  const Word mine = numbers, count = static_cast<Word>(threads) * rounds() * size();
  Word all = 0;
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all == count * (count - 1) / 2);
  if (rank() == 0) CHECK(own(window) == count);
}

TEST_CASE("Threads that make and free windows on communicators of their own") {
  std::vector<MPI_Comm> comms(threads);
  for (MPI_Comm& comm : comms) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  std::atomic<int> wrong{0};
  in_threads([&](int t) {
    for (int round = 0; round < rounds() / 6; ++round) {
      Array<Word> window(1, -1, round % 2 == 0 ? Kind::create : Kind::allocate,
                         comms[static_cast<std::size_t>(t)]);
      const Word mine = 10 * round + rank();
      MPI_Win_fence(0, window.win);
      put(window, mine, window.right(), 0);
      MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
      if (window[0] != 10 * round + window.left()) ++wrong;
    }
  });
  CHECK(wrong == 0);
  for (MPI_Comm& comm : comms) MPI_Comm_free(&comm);
}
