// Field: non-blocking epochs beside locks of other windows.
// SPDX-License-Identifier: BSD-3-Clause
#include "nonblocking.hpp"
#include "scene.hpp"

using namespace overlap::test;

// One holds the lock of the first window when the other one asks for it, gives it back, and asks
// for the second's.
TEST_CASE("A lock that is given back before it is there: nobody waits for ever") {
  if (size() < 3) return;
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::dynamic);
  const bool all = GENERATE(false, true);
  CAPTURE(name_of(kind), all);
  Array<Word> first(1, 0, kind), second(1, 0, kind);
  const Word one = 1;
  constexpr int turns = 10;
  for (int turn = 0; turn < turns; ++turn) {
    if (rank() == 0) {
      compute(std::chrono::milliseconds(1));
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, first.win);
      add(first, one, 2, 0);
      MPI_Request ended = request_of(MPIX_Win_iunlock, 2, first.win);
      if (all)
        MPI_Win_lock_all(0, second.win);
      else
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, second.win);
      add(second, one, 2, 0);
      MPI_Win_flush(2, second.win);
      finish(ended);
      if (all)
        MPI_Win_unlock_all(second.win);
      else
        MPI_Win_unlock(2, second.win);
    } else if (rank() == 1) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, first.win);
      add(first, one, 2, 0);
      MPI_Win_flush(2, first.win);
      compute(std::chrono::milliseconds(4));
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, second.win);
      add(second, one, 2, 0);
      MPI_Win_unlock(2, second.win);
      MPI_Win_unlock(2, first.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank() == 2) {
    CHECK(own(first) == 2 * turns);
    CHECK(own(second) == 2 * turns);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
