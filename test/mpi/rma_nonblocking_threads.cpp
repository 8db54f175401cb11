// Field: non-blocking epochs with MPI_THREAD_MULTIPLE.
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"

#include <thread>

using namespace overlap::test;

namespace {
[[maybe_unused]] const bool multiple = (wanted_thread_level = MPI_THREAD_MULTIPLE, true);

/// Lock some ranks exclusively, in ascending order, and add one to a word of each. Asserts nothing:
/// Catch2 takes assertions from one thread at a time.
void add_under_locks(const Array<Word>& window, int first, int end) {
  const Word one = 1;
  std::vector<MPI_Request> requests;
  for (int to = first; to < end; ++to) {
    MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, to, 0, window.win, &requests.emplace_back());
    add(window, one, to, 0);
  }
  for (int to = first; to < end; ++to) MPI_Win_flush(to, window.win);
  for (int to = first; to < end; ++to) MPIX_Win_iunlock(to, window.win, &requests.emplace_back());
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}
}  // namespace

// Those of two processes that ask in the same order never wait for each other.
TEST_CASE("Locks that a thread asks for are granted in that order") {
  constexpr int turns = 300;
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    for (int turn = 0; turn < turns; ++turn) add_under_locks(window, 0, size());
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == Word{turns} * size());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Locks of two threads, each in its order") {
  constexpr int turns = 200;
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    const int middle = size() / 2;
    std::thread other([&] {
      for (int turn = 0; turn < turns; ++turn) add_under_locks(window, 0, middle);
    });
    for (int turn = 0; turn < turns; ++turn) add_under_locks(window, middle, size());
    other.join();
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == Word{turns} * size());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Open MPI's own components may keep the caller of MPI_Win_lock_all here.
TEST_CASE("A thread that runs ahead of a lock keeps no other one from another window's") {
  if (size() < 2) return;
  Array<Word> first(1, 0, Kind::create), second(1, 0, Kind::create);
  const Word value = 5;
  if (rank() == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, first.win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock_all(0, first.win);
    put(first, value, 1, 0);
    std::thread other([&] {
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, second.win);
      put(second, value, 1, 0);
      MPI_Win_unlock(1, second.win);
    });
    other.join();
    MPI_Send(nullptr, 0, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Win_unlock_all(first.win);
  } else if (rank() == 1) {
    MPI_Recv(nullptr, 0, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock(1, first.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) {
    CHECK(own(first) == value);
    CHECK(own(second) == value);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
