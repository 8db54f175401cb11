// Field: one-sided communication: fence, and post, start, complete, wait and test.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <numeric>
#include <random>
#include <utility>

using namespace overlap::test;

TEST_CASE("Fence: every assertion that is true") {
  Array<Word> window(1);
  Word turn = 0;
  for (const int before :
       {0, MPI_MODE_NOPRECEDE, MPI_MODE_NOSTORE, MPI_MODE_NOPRECEDE | MPI_MODE_NOSTORE}) {
    for (const int after : {0, MPI_MODE_NOSTORE, MPI_MODE_NOPUT, MPI_MODE_NOSUCCEED,
                            MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED}) {
      CAPTURE(before, after);
      ++turn;
      const Word mine = 100 * turn + rank();
      MPI_Win_fence(before, window.win);
      put(window, mine, window.right(), 0);
      MPI_Win_fence(after, window.win);
      CHECK(window[0] == 100 * turn + window.left());
      Word got = -1;
      MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT | MPI_MODE_NOSTORE, window.win);
      get(window, got, window.right(), 0);
      MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, window.win);
      CHECK(got == mine);
    }
  }
}

TEST_CASE("Fence: stores before it are seen by gets after it") {
  Array<Word> window(1);
  for (Word turn = 0; turn < 50; ++turn) {
    Word got = -1;
    MPI_Win_fence(0, window.win);
    window[0] = 10 * turn + rank();
    MPI_Win_fence(MPI_MODE_NOPRECEDE | MPI_MODE_NOPUT, window.win);
    get(window, got, window.right(), 0);
    MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOSUCCEED, window.win);
    REQUIRE(got == 10 * turn + window.right());
  }
}

TEST_CASE("Fence: everybody to everybody, puts, gets, accumulates in one epoch") {
  Array<Word> window(2 * ranks() + 1);
  window.locally([&] { window[2 * ranks()] = 7 * rank(); });
  const Word one = 1, mine = 50 + rank();
  std::vector<Word> got(ranks(), -1);
  MPI_Win_fence(0, window.win);
  for (int to = 0; to < size(); ++to) {
    put(window, mine, to, self());
    for (std::size_t i = 0; i < ranks(); ++i) add(window, one, to, ranks() + i);
    get(window, got[static_cast<std::size_t>(to)], to, 2 * ranks());
  }
  MPI_Win_fence(0, window.win);
  for (std::size_t i = 0; i < ranks(); ++i) {
    CHECK(window[i] == 50 + static_cast<Word>(i));
    CHECK(window[ranks() + i] == size());
    CHECK(got[i] == 7 * static_cast<Word>(i));
  }
}

TEST_CASE("Fence: epochs without operations") {
  Array<Word> window(1, 3);
  for (int i = 0; i < 20; ++i) MPI_Win_fence(0, window.win);
  CHECK(window[0] == 3);
}

TEST_CASE("Fence: behind it nobody misses what others did between it and the last one") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 0, kind);
    const int last = size() - 1;
    const bool is_late = rank() == 0;
    const Word mine = 7 + rank();
    MPI_Win_fence(0, window.win);
    if (is_late) compute(std::chrono::milliseconds(20));
    // A lock epoch at every rank: the others' are of their own memory.
    const int to = is_late ? last : rank();
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, to, 0, window.win);
    if (is_late) put(window, mine, to, 0);
    MPI_Win_unlock(to, window.win);
    MPI_Win_fence(0, window.win);
    CHECK(window[0] == (rank() == last ? 7 : 0));
  }
}

// mpi4py's own tests let go of the result before the closing fence.
TEST_CASE("Fence: behind the first one an operation on own memory waits for nobody") {
  for (const Kind kind : {Kind::create, Kind::allocate, Kind::dynamic}) {
    CAPTURE(name_of(kind));
    Array<Word> window(1, 5, kind);
    const Word one = 1;
    Word got = -1;
    if (rank() != 0) compute(std::chrono::milliseconds(20));
    MPI_Win_fence(0, window.win);
    MPI_Fetch_and_op(&one, &got, MPI_INT64_T, rank(), window.index(rank(), 0), MPI_SUM, window.win);
    CHECK(std::exchange(got, -1) == 5);
    MPI_Win_fence(0, window.win);
    CHECK(got == -1);
    CHECK(window[0] == 6);
  }
}

TEST_CASE("Post, start, complete, wait: a ring of neighbours") {
  Array<Word> window(2);
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  for (Word turn = 0; turn < 50; ++turn) {
    const Word mine = 10 * turn + rank();
    Word got = -1;
    window[1] = -turn;  // no epoch is open
    MPI_Win_post(from, 0, window.win);
    MPI_Win_start(to, 0, window.win);
    put(window, mine, window.right(), 0);
    get(window, got, window.right(), 1);
    MPI_Win_complete(window.win);
    REQUIRE(got == -turn);
    MPI_Win_wait(window.win);
    REQUIRE(window[0] == 10 * turn + window.left());
  }
}

TEST_CASE("Post and start: assertions that are true") {
  Array<Word> window(1);
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  for (const int asserts :
       {0, MPI_MODE_NOSTORE, MPI_MODE_NOCHECK, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE}) {
    CAPTURE(asserts);
    const Word mine = 1000 * asserts + rank();
    MPI_Win_post(from, asserts, window.win);
    MPI_Barrier(MPI_COMM_WORLD);  // MPI_MODE_NOCHECK: the post has been called
    MPI_Win_start(to, asserts & MPI_MODE_NOCHECK, window.win);
    put(window, mine, window.right(), 0);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    CHECK(window[0] == 1000 * asserts + window.left());
    Word got = -1;
    MPI_Win_post(from, asserts | MPI_MODE_NOPUT, window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_start(to, asserts & MPI_MODE_NOCHECK, window.win);
    get(window, got, window.right(), 0);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    CHECK(got == mine);
  }
}

TEST_CASE("Post and start with empty groups") {
  Array<Word> window(1, 3);
  for (int i = 0; i < 5; ++i) {
    MPI_Win_post(MPI_GROUP_EMPTY, 0, window.win);
    MPI_Win_start(MPI_GROUP_EMPTY, 0, window.win);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
  }
  CHECK(window[0] == 3);
}

TEST_CASE("Test: no before the origin has completed, yes afterwards") {
  if (size() < 2) return;
  Array<Word> window(1, -1);
  const Group origin(window.win, {0}), target(window.win, {1});
  for (Word turn = 0; turn < 10; ++turn) {
    if (rank() == 0) {
      MPI_Win_start(target, 0, window.win);
      put(window, turn, 1, 0);
      await(1);
      MPI_Win_complete(window.win);
    } else if (rank() == 1) {
      int done = 1;
      MPI_Win_post(origin, 0, window.win);
      for (int i = 0; i < 5; ++i) {
        MPI_Win_test(window.win, &done);
        REQUIRE(done == 0);
      }
      tell(0);
      while (done == 0) MPI_Win_test(window.win, &done);
      REQUIRE(window[0] == turn);
    }
  }
}

// The post of a process that belongs to a later epoch comes first. It must not count for the epoch
// whose targets have not posted: their memory is not touched before.
TEST_CASE("Consecutive epochs with different groups: an early post counts for its own epoch") {
  if (size() < 3) return;
  const int last = size() - 1;
  std::vector<int> others(ranks() - 2);
  std::iota(others.begin(), others.end(), 1);
  Array<Word> window(1, -1);
  const Group origin(window.win, {0}), first(window.win, others), second(window.win, {last});
  for (Word turn = 0; turn < 20; ++turn) {
    const Word mine = 2 * turn, then = 2 * turn + 1;
    if (rank() == 0) {
      MPI_Win_start(first, 0, window.win);
      for (const int to : others) put(window, mine, to, 0);
      MPI_Win_complete(window.win);
      MPI_Win_start(second, 0, window.win);
      put(window, then, last, 0);
      MPI_Win_complete(window.win);
    } else if (rank() == last) {
      MPI_Win_post(origin, 0, window.win);
      for (const int other : others) tell(other);
      MPI_Win_wait(window.win);
      REQUIRE(window[0] == then);
    } else {
      await(last);
      poke(std::chrono::microseconds(500));
      REQUIRE(window[0] == (turn == 0 ? -1 : mine - 2));
      MPI_Win_post(origin, 0, window.win);
      MPI_Win_wait(window.win);
      REQUIRE(window[0] == mine);
    }
  }
}

TEST_CASE("Consecutive epochs with random groups, every process origin and target") {
  Array<Word> window(ranks(), -1);
  std::vector<Word> expected(ranks(), -1);
  for (Word turn = 0; turn < 100; ++turn) {
    std::mt19937 random(static_cast<unsigned>(turn));  // the same at every rank
    std::vector<int> origins, targets;
    for (int origin = 0; origin < size(); ++origin) {
      for (int target = 0; target < size(); ++target) {
        if (random() % 3 != 0) continue;
        if (target == rank()) origins.push_back(origin);
        if (origin == rank()) targets.push_back(target);
      }
    }
    std::shuffle(targets.begin(), targets.end(), random);
    const Group from(window.win, origins), to(window.win, targets);
    if (!origins.empty()) MPI_Win_post(from, 0, window.win);
    if (!targets.empty()) {
      MPI_Win_start(to, 0, window.win);
      for (const int target : targets) put(window, turn, target, self());
      MPI_Win_complete(window.win);
    }
    if (origins.empty()) continue;
    MPI_Win_wait(window.win);
    for (const int origin : origins) expected[static_cast<std::size_t>(origin)] = turn;
    for (std::size_t i = 0; i < ranks(); ++i) REQUIRE(window[i] == expected[i]);
  }
}

TEST_CASE("Epochs of all kinds one after the other on one window") {
  Array<Word> window(1, 0);
  const Word one = 1;
  const Group from(window.win, {window.left()}), to(window.win, {window.right()});
  for (Word turn = 1; turn <= 15; ++turn) {
    MPI_Win_fence(MPI_MODE_NOPRECEDE, window.win);
    add(window, one, window.right(), 0);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window.win);
    REQUIRE(window[0] == 4 * turn - 3);
    MPI_Win_post(from, 0, window.win);
    MPI_Win_start(to, 0, window.win);
    add(window, one, window.right(), 0);
    MPI_Win_complete(window.win);
    MPI_Win_wait(window.win);
    REQUIRE(window[0] == 4 * turn - 2);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, window.right(), 0, window.win);
    add(window, one, window.right(), 0);
    MPI_Win_unlock(window.right(), window.win);
    MPI_Win_lock_all(0, window.win);
    add(window, one, window.right(), 0);
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    REQUIRE(own(window) == 4 * turn);
  }
}

TEST_CASE("The end of an epoch does not wait for answers to others, who may compute") {
  if (size() < 3) return;
  constexpr std::size_t asked = 8 << 20;
  constexpr int origin = 0, target = 1, asks = 2;  // which computes
  Steps steps;
  int step = 0;
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  const auto group_of = [world](int member) {
    MPI_Group group = MPI_GROUP_NULL;
    MPI_Group_incl(world, 1, &member, &group);
    return group;
  };
  MPI_Group origins = group_of(origin), targets = group_of(target), others = group_of(asks);
  for (const bool locks : {false, true}) {
    CAPTURE(locks);
    Array<Word> window(asked / sizeof(Word), 3);
    const int count = static_cast<int>(asked / sizeof(Word));
    if (rank() == origin) {
      const Word one = 1;
      if (!locks) MPI_Win_post(others, 0, window.win);
      steps.wait_for(step + 1);
      locks ? MPI_Win_lock_all(0, window.win) : MPI_Win_start(targets, 0, window.win);
      MPI_Put(&one, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, window.win);
      poke(microseconds(100000));  // answers, as far as there is room
      locks ? MPI_Win_unlock_all(window.win) : MPI_Win_complete(window.win);
      steps.reach(step + 2);
      if (!locks) MPI_Win_wait(window.win);
    } else if (rank() == target && !locks) {
      MPI_Win_post(origins, 0, window.win);
      MPI_Win_wait(window.win);
    } else if (rank() == asks) {
      std::vector<Word> in(asked / sizeof(Word), 0);
      locks ? MPI_Win_lock(MPI_LOCK_SHARED, origin, 0, window.win)
            : MPI_Win_start(origins, 0, window.win);
      MPI_Get_accumulate(nullptr, 0, MPI_INT64_T, in.data(), count, MPI_INT64_T, origin, 0, count,
                         MPI_INT64_T, MPI_NO_OP, window.win);
      poke(microseconds(2000));  // the question goes
      steps.reach(step + 1);
      steps.wait_for(step + 2);
      locks ? MPI_Win_unlock(origin, window.win) : MPI_Win_complete(window.win);
      CHECK(in == std::vector<Word>(in.size(), 3));
    }
    step += 2;
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank() == target) CHECK(own(window, 0) == 1);
  }
  for (MPI_Group* each : {&origins, &targets, &others, &world}) MPI_Group_free(each);
}
