// Field: one-sided communication: locks of several ranks at a time, in whose circle nobody waits.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <algorithm>
#include <random>

using namespace overlap::test;

// Whoever locks all asks for each lock when it uses it, and holds others then.
TEST_CASE("Shared locks of several ranks beside exclusive ones: nobody waits for ever") {
  if (size() < 4) return;
  const bool all = GENERATE(true, false);
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::dynamic}) {
    CAPTURE(name_of(kind), all);
    Array<Word> window(ranks(), 0, kind);
    const Word mine = 10 + rank();
    const int first = rank() == 0 || rank() == 3 ? 2 : 3, second = 5 - first;
    const auto write = [&](int to) {
      put(window, mine, to, self());
      MPI_Win_flush(to, window.win);
    };
    for (int turn = 0; turn < 5; ++turn) {
      if (rank() < 2) {
        if (all)
          MPI_Win_lock_all(0, window.win);
        else
          MPI_Win_lock(MPI_LOCK_SHARED, first, 0, window.win);
        write(first);
      }
      MPI_Barrier(MPI_COMM_WORLD);
      if (rank() < 2) {
        compute(std::chrono::milliseconds(3));  // the others stand in the queues
        if (!all) MPI_Win_lock(MPI_LOCK_SHARED, second, 0, window.win);
        write(second);
        if (all) MPI_Win_unlock_all(window.win);
        for (const int to : {first, second})
          if (!all) MPI_Win_unlock(to, window.win);
      } else if (rank() < 4) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, first, 0, window.win);
        put(window, mine, first, self());
        MPI_Win_unlock(first, window.win);
      }
      MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank() == 2 || rank() == 3) {
      CHECK(own(window, 0) == 10);
      CHECK(own(window, 1) == 11);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Exclusive locks of several in ascending order, each held: nobody waits for ever") {
  for (const Kind kind : {Kind::create, Kind::allocate}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    for (int turn = 0; turn < 20; ++turn) {
      for (int to = 0; to < size(); ++to) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
      for (int to = size() - 1; to >= 0; --to) {
        Word value = -1;
        get(window, value, to, 0);
        MPI_Win_flush(to, window.win);
        ++value;
        put(window, value, to, 0);
        MPI_Win_flush(to, window.win);
      }
      for (int to = 0; to < size(); ++to) MPI_Win_unlock(to, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == 20 * size());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// Each call that gives one back may wait for it.
TEST_CASE(
    "Exclusive locks of several in ascending order, given back in any: nobody waits for ever") {
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::dynamic);
  CAPTURE(name_of(kind));
  Array<Word> window(1, 0, kind);
  std::mt19937 random(static_cast<unsigned>(rank()) + 1);
  const Word one = 1;
  Word added = 0;
  for (int turn = 0; turn < 200; ++turn) {
    std::vector<int> held;
    for (int to = 0; to < size(); ++to) {
      if (random() % 4 == 0) continue;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
      held.push_back(to);
      if (random() % 3 == 0) MPI_Win_flush(to, window.win);
      add(window, one, to, 0);
      ++added;
      if (random() % 4 != 0) continue;
      MPI_Win_unlock(to, window.win);
      held.pop_back();
    }
    std::ranges::shuffle(held, random);
    for (const int to : held) MPI_Win_unlock(to, window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  Word here = own(window), all_here = 0, all = 0;
  MPI_Allreduce(&here, &all_here, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(&added, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(all_here == all);
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("Shared locks of two windows in any order beside exclusive ones: nobody waits for ever") {
  if (size() < 4) return;
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::dynamic);
  const bool all = GENERATE(false, true);
  CAPTURE(name_of(kind), all);
  Array<Word> windows[] = {Array<Word>(1, 0, kind), Array<Word>(1, 0, kind)};
  const auto look = [&](int which) {
    Word value = -1;
    get(windows[which], value, 2 + which, 0);
    MPI_Win_flush(2 + which, windows[which].win);
    return value;
  };
  const auto lock = [&](int which) {
    if (all)
      MPI_Win_lock_all(0, windows[which].win);
    else
      MPI_Win_lock(MPI_LOCK_SHARED, 2 + which, 0, windows[which].win);
  };
  const auto unlock = [&](int which) {
    if (all)
      MPI_Win_unlock_all(windows[which].win);
    else
      MPI_Win_unlock(2 + which, windows[which].win);
  };
  for (int turn = 0; turn < 10; ++turn) {
    if (rank() < 2) {
      lock(rank());
      CHECK(look(rank()) >= turn - 1);
      compute(std::chrono::milliseconds(4));  // the others stand in the queues
      lock(1 - rank());
      CHECK(look(1 - rank()) >= turn - 1);
      unlock(1 - rank());
      unlock(rank());
    } else if (rank() < 4) {
      compute(std::chrono::milliseconds(2));
      const int which = rank() - 2;
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank(), 0, windows[which].win);
      put(windows[which], Word{turn}, rank(), 0);
      MPI_Win_unlock(rank(), windows[which].win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

// One holds the lock of the first window when another asks for it, and then for the second's.
TEST_CASE("Locks of two windows in the same order: nobody waits for ever") {
  if (size() < 3) return;
  const Kind kind = GENERATE(Kind::create, Kind::allocate, Kind::dynamic);
  const bool all = GENERATE(false, true);
  CAPTURE(name_of(kind), all);
  Array<Word> first(1, 0, kind), second(1, 0, kind);
  const auto add_one = [](const Array<Word>& window) {
    Word value = -1;
    get(window, value, 0, 0);
    MPI_Win_flush(0, window.win);
    ++value;
    put(window, value, 0, 0);
    MPI_Win_flush(0, window.win);
  };
  for (int turn = 0; turn < 10; ++turn) {
    if (rank() == 1 || rank() == 2) {
      if (rank() == 2) compute(std::chrono::milliseconds(1));
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, first.win);
      if (rank() == 1) add_one(first);
      if (rank() == 1) compute(std::chrono::milliseconds(4));
      if (all && rank() == 2)
        MPI_Win_lock_all(0, second.win);
      else
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, second.win);
      add_one(second);
      if (rank() == 2) add_one(first);
      if (all && rank() == 2)
        MPI_Win_unlock_all(second.win);
      else
        MPI_Win_unlock(0, second.win);
      MPI_Win_unlock(0, first.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank() == 0) {
    CHECK(own(first) == 20);
    CHECK(own(second) == 20);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

TEST_CASE("A lock that is not checked waits for none of another window") {
  if (size() < 3) return;
  Array<Word> first(1, 0, Kind::create), second(1, 0, Kind::create);
  const Word value = 7;
  if (rank() == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, first.win);
  if (rank() == 1) get(first, first.data()[0], 2, 0);
  if (rank() == 1) MPI_Win_flush(2, first.win);  // it has the lock
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, 0, first.win);
    put(first, value, 2, 0);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 2, MPI_MODE_NOCHECK, second.win);
    put(second, value, 2, 0);
    MPI_Win_unlock(2, second.win);
    MPI_Send(nullptr, 0, MPI_INT, 1, 3, MPI_COMM_WORLD);
    MPI_Win_unlock(2, first.win);
  } else if (rank() == 1) {
    MPI_Recv(nullptr, 0, MPI_INT, 0, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock(2, first.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 2) {
    CHECK(own(first) == value);
    CHECK(own(second) == value);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

// Shared locks let each other in: the first in the queue must not forget the one behind it.
TEST_CASE("An operation of no bytes may take a ticket: the next one is let in meanwhile") {
  if (size() < 3) return;
  Array<Word> window(1, 0);
  const Word value = 7;
  if (rank() == 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 1, 0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    MPI_Win_lock_all(0, window.win);
    MPI_Put(&value, 0, MPI_INT64_T, 1, 0, 0, MPI_INT64_T, window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);  // the first ticket is taken, if that takes one
  if (rank() == 2) MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
  if (rank() == 2) put(window, value, 1, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) MPI_Win_unlock(1, window.win);
  if (rank() == 2) {
    MPI_Win_unlock(1, window.win);
    MPI_Send(nullptr, 0, MPI_INT, 0, 1, MPI_COMM_WORLD);
  }
  if (rank() == 0) {
    MPI_Recv(nullptr, 0, MPI_INT, 2, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 1) CHECK(own(window) == 7);
}
