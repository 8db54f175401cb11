// Field: one-sided communication: locks and flushes.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <sys/resource.h>

using namespace overlap::test;

TEST_CASE("Exclusive locks: get, add one, put, by everybody, is exact") {
  constexpr int turns = 30;
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Array<Word> window(2, 0, kind);
    for (int turn = 0; turn < turns; ++turn) {
      Word value[2] = {-1, -1};
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
      get(window, value[0], 0, 0);
      get(window, value[1], 0, 1);
      MPI_Win_flush(0, window.win);
      REQUIRE(value[0] == value[1]);
      const Word next = value[0] + 1;
      put(window, next, 0, 0);
      put(window, next, 0, 1);
      MPI_Win_unlock(0, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 0) CHECK(own(window, 0) == static_cast<Word>(turns) * size());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Shared locks are held at the same time") {
  Array<Word> window(ranks());
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
  Word got = -1;
  get(window, got, 0, 0);
  MPI_Win_flush(0, window.win);  // the lock has been granted
  MPI_Barrier(MPI_COMM_WORLD);   // to everybody
  const Word mine = rank() + 1;
  put(window, mine, 0, self());
  MPI_Win_unlock(0, window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() != 0) return;
  for (std::size_t i = 0; i < ranks(); ++i) CHECK(own(window, i) == static_cast<Word>(i) + 1);
}

TEST_CASE("A shared lock never sees what an exclusive one does in between") {
  Array<Word> window(2);
  for (int turn = 0; turn < 40; ++turn) {
    const bool writer = (turn + rank()) % 3 == 0;
    const Word out = 1000 * turn + rank();
    Word in[2] = {-1, -2};
    MPI_Win_lock(writer ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, 0, 0, window.win);
    if (writer) {
      put(window, out, 0, 0);
      MPI_Win_flush(0, window.win);
      put(window, out, 0, 1);
    } else {
      get(window, in[0], 0, 0);
      MPI_Win_flush(0, window.win);
      get(window, in[1], 0, 1);
    }
    MPI_Win_unlock(0, window.win);
    if (!writer) REQUIRE(in[0] == in[1]);
  }
}

// Locks are taken in ascending order: no two processes wait for each other.
TEST_CASE("Exclusive locks of two targets at once: what one loses the other gains") {
  if (size() < 2) return;
  constexpr Word start = 1000;
  Array<Word> account(1, start);
  std::mt19937 random(static_cast<unsigned>(rank()) + 3);
  for (int turn = 0; turn < 25; ++turn) {
    const int a = static_cast<int>(random() % (ranks() - 1));
    const int b = a + 1 + static_cast<int>(random() % (ranks() - 1 - static_cast<unsigned>(a)));
    const Word amount = static_cast<Word>(random() % 100);
    Word at_a = 0, at_b = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, a, 0, account.win);
    get(account, at_a, a, 0);
    MPI_Win_flush(a, account.win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, b, 0, account.win);
    get(account, at_b, b, 0);
    MPI_Win_flush(b, account.win);
    at_a -= amount;
    at_b += amount;
    put(account, at_a, a, 0);
    put(account, at_b, b, 0);
    MPI_Win_unlock(turn % 2 == 0 ? a : b, account.win);
    MPI_Win_unlock(turn % 2 == 0 ? b : a, account.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const Word mine = own(account);
  Word sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  CHECK(sum == start * size());
}

TEST_CASE("Shared locks of all targets at once, closed in another order") {
  Array<Word> window(ranks(), -1);
  const Word mine = 70 + rank();
  for (int to = 0; to < size(); ++to) MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window.win);
  for (int to = 0; to < size(); ++to) put(window, mine, to, self());
  for (int to = size() - 1; to >= 0; --to) {
    Word back = -1;
    MPI_Win_flush(to, window.win);
    get(window, back, to, self());
    MPI_Win_unlock(to, window.win);
    CHECK(back == mine);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (std::size_t i = 0; i < ranks(); ++i) CHECK(own(window, i) == 70 + static_cast<Word>(i));
}

TEST_CASE("A process that locks its own memory waits for who holds the lock") {
  if (size() < 2) return;
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::shared, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    const Word first = 1, second = 2;
    if (rank() == 1) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
      put(window, first, 0, 0);
      MPI_Win_flush(0, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == 1) {
      compute(std::chrono::milliseconds(20));
      put(window, second, 0, 0);
      MPI_Win_unlock(0, window.win);
    }
    if (rank() == 0) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
      CHECK(window[0] == 2);
      MPI_Win_unlock(0, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Locks without operations") {
  Array<Word> window(1, 3);
  for (int turn = 0; turn < 20; ++turn) {
    const int to = (rank() + turn) % size();
    MPI_Win_lock(turn % 2 == 0 ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, to, 0, window.win);
    MPI_Win_unlock(to, window.win);
    MPI_Win_lock_all(0, window.win);
    MPI_Win_unlock_all(window.win);
  }
  CHECK(own(window) == 3);
}

namespace {

/// Nobody else locks the neighbour between two barriers.
template <class Open, class Close>
void no_check(Open&& open, Close&& close) {
  Array<Word> window(1, -1);
  for (Word turn = 0; turn < 3; ++turn) {
    const Word mine = 10 * turn + rank();
    open(window.right(), window.win);
    put(window, mine, window.right(), 0);
    close(window.right(), window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    CHECK(own(window) == 10 * turn + window.left());
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

}  // namespace

TEST_CASE("MPI_MODE_NOCHECK: shared lock") {
  no_check([](int to, MPI_Win win) { MPI_Win_lock(MPI_LOCK_SHARED, to, MPI_MODE_NOCHECK, win); },
           [](int to, MPI_Win win) { MPI_Win_unlock(to, win); });
}
TEST_CASE("MPI_MODE_NOCHECK: exclusive lock") {
  no_check([](int to, MPI_Win win) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, MPI_MODE_NOCHECK, win); },
           [](int to, MPI_Win win) { MPI_Win_unlock(to, win); });
}
TEST_CASE("MPI_MODE_NOCHECK: lock_all", "[stricter]") {
  no_check([](int, MPI_Win win) { MPI_Win_lock_all(MPI_MODE_NOCHECK, win); },
           [](int, MPI_Win win) { MPI_Win_unlock_all(win); });
}

namespace {

/// Puts are complete at the target after `flush`, and a message may say so.
template <class Flush>
void put_flush_and_tell(Flush&& flush) {
  Array<Word> window(1, -1);
  MPI_Win_lock_all(0, window.win);
  for (Word turn = 0; turn < 30; ++turn) {
    const Word mine = 10 * turn + rank();
    put(window, mine, window.right(), 0);
    flush(window.right(), window.win);
    MPI_Sendrecv(nullptr, 0, MPI_BYTE, window.right(), 1, nullptr, 0, MPI_BYTE, window.left(), 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_sync(window.win);
    REQUIRE(window[0] == 10 * turn + window.left());
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Win_unlock_all(window.win);
}

}  // namespace

TEST_CASE("Flush: complete at the target") {
  put_flush_and_tell([](int to, MPI_Win win) { MPI_Win_flush(to, win); });
}
TEST_CASE("Flush_all: complete at the target") {
  put_flush_and_tell([](int, MPI_Win win) { MPI_Win_flush_all(win); });
}
TEST_CASE("Flush_local, then flush: complete at the target") {
  put_flush_and_tell([](int to, MPI_Win win) {
    MPI_Win_flush_local(to, win);
    MPI_Win_flush(to, win);
  });
}

TEST_CASE("Flush_local and flush_local_all: the origin's buffer may be used again") {
  constexpr std::size_t bytes = 200000;
  Window window(bytes * 4);
  MPI_Win_lock_all(0, window.win);
  Bytes out(bytes);
  for (unsigned turn = 0; turn < 4; ++turn) {
    fill(out.data(), bytes, turn + 10U * static_cast<unsigned>(rank()));
    MPI_Put(out.data(), bytes, MPI_BYTE, window.right(), static_cast<MPI_Aint>(bytes * turn), bytes,
            MPI_BYTE, window.win);
    if (turn % 2 == 0)
      MPI_Win_flush_local(window.right(), window.win);
    else
      MPI_Win_flush_local_all(window.win);
  }
  std::fill(out.begin(), out.end(), 0x11);
  MPI_Win_unlock_all(window.win);
  MPI_Barrier(MPI_COMM_WORLD);
  window.locally([&] {
    for (unsigned turn = 0; turn < 4; ++turn)
      CHECK(first_wrong(window.memory + bytes * turn, bytes,
                        turn + 10U * static_cast<unsigned>(window.left())) == bytes);
  });
}

// The target waits in MPI_Win_sync and loads: no call of it names the origin.
TEST_CASE("A flag that is put after a flush says that the data is there") {
  if (size() < 2) return;
  Array<Word> window(101, 0);
  MPI_Win_lock_all(0, window.win);
  for (Word turn = 1; turn <= 20; ++turn) {
    if (rank() == 0) {
      const std::vector<Word> data(100, turn);
      MPI_Put(data.data(), 100, MPI_INT64_T, 1, 0, 100, MPI_INT64_T, window.win);
      MPI_Win_flush(1, window.win);
      MPI_Accumulate(&turn, 1, MPI_INT64_T, 1, 100, 1, MPI_INT64_T, MPI_REPLACE, window.win);
      MPI_Win_flush(1, window.win);
      await(1);
    } else if (rank() == 1) {
      Word flag = 0;
      while (flag != turn) {
        MPI_Fetch_and_op(nullptr, &flag, MPI_INT64_T, 1, 100, MPI_NO_OP, window.win);
        MPI_Win_flush(1, window.win);
      }
      MPI_Win_sync(window.win);
      CHECK(std::count(window.data(), window.data() + 100, turn) == 100);
      tell(0);
    }
  }
  MPI_Win_unlock_all(window.win);
}

// Processors keep stores back: without a barrier in the flush the get overtakes them.
TEST_CASE("Flush: who puts, flushes and gets does not miss what the other has flushed before",
          "[host]") {
  if (size() < 2) return;
  using Flush = int (*)(MPI_Win);
  const Flush one = [](MPI_Win win) { return MPI_Win_flush(0, win); };
  const Flush all = [](MPI_Win win) { return MPI_Win_flush_all(win); };
  const Flush closed = [](MPI_Win win) {
    MPI_Win_unlock_all(win);
    return MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  };
  const Word turns = size() == 2 ? 20000 : 1000;  // others take the processors of these two
  constexpr std::size_t words_apart = 16;
  Meeting meeting;
  const bool takes_part = on_one_node(MPI_COMM_WORLD) && rank() < 2;
  for (const Flush flush : {one, all, closed}) {
    Array<Word> window(2 * words_apart, 0, Kind::allocate);
    MPI_Win_lock_all(MPI_MODE_NOCHECK, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (Word turn = 1; takes_part && turn <= turns; ++turn) {
      Word got = -1;
      meeting.meet();
      put(window, turn, 0, self() * words_apart);
      flush(window.win);
      get(window, got, 0, (1 - self()) * words_apart);
      flush(window.win);
      INFO("turn " << turn);
      REQUIRE(meeting.meet(got == turn ? 1 : 0) > 0);
    }
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Flush does not end requests: they are waited for afterwards") {
  Array<Word> window(64, 0);
  std::vector<Word> in(64, -1), out(64, rank() + 5);
  std::vector<MPI_Request> requests(128);
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  for (std::size_t i = 0; i < 64; ++i)
    MPI_Rput(&out[i], 1, MPI_INT64_T, window.right(), window.index(window.right(), i), 1,
             MPI_INT64_T, window.win, &requests[i]);
  MPI_Win_flush(window.right(), window.win);
  for (std::size_t i = 0; i < 64; ++i)
    MPI_Rget(&in[i], 1, MPI_INT64_T, window.right(), window.index(window.right(), i), 1,
             MPI_INT64_T, window.win, &requests[64 + i]);
  MPI_Win_unlock(window.right(), window.win);
  CHECK(in == out);  // closing the epoch has completed them too
  CHECK(MPI_Waitall(128, requests.data(), MPI_STATUSES_IGNORE) == MPI_SUCCESS);
}

TEST_CASE("Puts without a flush: what is in flight is bounded", "[stricter]") {
  constexpr int puts = 100000;
  constexpr long growth_max_kib = 48 << 10;
  Array<Word> window(64);
  rusage before{}, after{};
  const Word word = 5;
  MPI_Win_lock(MPI_LOCK_SHARED, window.right(), 0, window.win);
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < puts; ++i)
    put(window, word, window.right(), static_cast<std::size_t>(i % 64));
  getrusage(RUSAGE_SELF, &after);
  MPI_Win_unlock(window.right(), window.win);
  CHECK(after.ru_maxrss - before.ru_maxrss < growth_max_kib);
  MPI_Barrier(MPI_COMM_WORLD);
  CHECK(own(window, 63) == word);
}

TEST_CASE("A row of small operations arrives without a flush while nobody but looks for messages",
          "[stricter]") {
  constexpr std::size_t row = 40;
  if (size() < 2 || rank() > 1) return;
  const auto look = [](int from) {
    int found = 0;
    MPI_Iprobe(from, 5, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    return found != 0;
  };
  MPI_Comm pair;
  MPI_Group world, both;
  const int members[] = {0, 1};
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, 2, members, &both);
  MPI_Comm_create_group(MPI_COMM_WORLD, both, 5, &pair);
  Word* memory = nullptr;
  MPI_Win win;
  MPI_Win_allocate(static_cast<MPI_Aint>(row * sizeof(Word)), sizeof(Word), MPI_INFO_NULL, pair,
                   &memory, &win);
  const Word one = 1;
  if (rank() == 1) std::fill_n(memory, row, 0);
  MPI_Barrier(pair);
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, win);
    for (std::size_t i = 0; i < row; ++i) {
      const auto at = static_cast<MPI_Aint>(i);
      if (i % 3 == 0)
        MPI_Accumulate(&one, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, MPI_SUM, win);
      else
        MPI_Put(&one, 1, MPI_INT64_T, 1, at, 1, MPI_INT64_T, win);
    }
    while (!look(1)) {}
    MPI_Recv(nullptr, 0, MPI_INT, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Win_unlock(1, win);
  } else {
    const auto has_come = [memory](std::size_t i) {
      return *static_cast<volatile Word*>(memory + i) == 1;
    };
    for (std::size_t i = 0; i < row; ++i) {
      while (!has_come(i)) static_cast<void>(look(0));
    }
    MPI_Send(nullptr, 0, MPI_INT, 0, 5, MPI_COMM_WORLD);
  }
  MPI_Barrier(pair);
  MPI_Win_free(&win);
  MPI_Comm_free(&pair);
  MPI_Group_free(&both);
  MPI_Group_free(&world);
}

TEST_CASE("A local flush sends a row of small puts", "[stricter][host]") {
  constexpr std::size_t row = 20;
  Array<Word> window(row);
  Steps steps;
  const Word one = 1;
  MPI_Barrier(MPI_COMM_WORLD);
  if (size() >= 2 && rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
    for (std::size_t i = 0; i < row; ++i) put(window, one, 1, i);
    MPI_Win_flush_local(1, window.win);
    steps.wait_for(1);  // without MPI until they have arrived
    MPI_Win_unlock(1, window.win);
  } else if (rank() == 1) {
    for (std::size_t i = 0; i < row; ++i) {
      int found = 0;
      while (*static_cast<volatile Word*>(&window[i]) != one)
        MPI_Iprobe(MPI_ANY_SOURCE, 7, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    }
    steps.reach(1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}
