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
