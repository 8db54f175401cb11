// Passive targets that make no call at all, where nothing of theirs is needed: the origin's
// processor or an adapter does the work. No interrupt thread runs.
// OVERLAP_TEST_ACCUMULATES=0: an adapter that does not accumulate.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

using namespace overlap::test;

namespace {

constexpr int origin = 0, target = 1;
constexpr std::size_t words = 3000;

/// Let the target stay out of MPI while the origin acts under a lock.
template <class Action>
void while_target_is_away(Array<Word>& window, Steps& steps, int& step, Action&& action) {
  MPI_Barrier(MPI_COMM_WORLD);
  step += 2;
  if (rank() == origin) {
    steps.wait_for(step - 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, window.win);
    action();
    MPI_Win_unlock(target, window.win);
    steps.reach(step);
  } else if (rank() == target) {
    steps.reach(step - 1);
    steps.wait_for(step);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

/// Adapters do not reach what a program attaches as it goes.
std::vector<Kind> kinds() {
  if (!direct() || over_ring()) return {Kind::create, Kind::allocate};
  return {Kind::create, Kind::allocate, Kind::dynamic};
}

/// The key of the memory and the connection are there: an adapter needs both sides for them.
void meet(Array<Word>& window) {
  Word word = 0;
  if (rank() == origin) {
    MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window.win);
    get(window, word, target, 0);
    MPI_Win_unlock(target, window.win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace

TEST_CASE("Passive target: puts and gets of any size need no call of it") {
  if (size() < 2) return;
  Steps steps;
  int step = 0;
  for (const Kind kind : kinds()) {
    Array<Word> window(words, 7, kind);
    meet(window);
    for (const int count : {1, 100, 256, 3000}) {
      CAPTURE(name_of(kind), count);
      std::vector<Word> data(words, count), back(words, 0);
      while_target_is_away(window, steps, step, [&] {
        MPI_Put(data.data(), count, MPI_INT64_T, target, window.index(target, 0), count,
                MPI_INT64_T, window.win);
        MPI_Win_flush(target, window.win);
        MPI_Get(back.data(), count, MPI_INT64_T, target, window.index(target, 0), count,
                MPI_INT64_T, window.win);
      });
      data.resize(static_cast<std::size_t>(count));
      back.resize(data.size());
      if (rank() == origin) CHECK(back == data);
      if (rank() == target) {
        CHECK(own(window, 0) == count);
        CHECK(own(window, data.size() - 1) == count);
      }
    }
  }
}

TEST_CASE("What has no room when an epoch ends goes out before its origin leaves MPI") {
  if (size() < 2) return;
  struct Load {
    int operations, words;
  };
  Steps steps;
  int step = 0;
  for (const bool fence : {false, true}) {
    for (const Load& load : {Load{2000, 8}, Load{500, 100}, Load{200, 1000}}) {
      CAPTURE(fence, load.operations, load.words);
      Array<Word> window(words, 0, Kind::create);
      const std::vector<Word> ones(words, 1);
      MPI_Group world = MPI_GROUP_NULL, other = MPI_GROUP_NULL;
      const int peer = rank() == origin ? target : origin;
      MPI_Comm_group(MPI_COMM_WORLD, &world);
      MPI_Group_incl(world, 1, &peer, &other);
      if (fence) MPI_Win_fence(0, window.win);
      MPI_Barrier(MPI_COMM_WORLD);
      step += 2;
      if (rank() == origin) {
        if (!fence) MPI_Win_start(other, 0, window.win);
        for (int i = 0; i < load.operations; ++i)
          MPI_Accumulate(ones.data(), load.words, MPI_INT64_T, target, 0, load.words, MPI_INT64_T,
                         MPI_SUM, window.win);
        steps.reach(step - 1);
        fence ? MPI_Win_fence(0, window.win) : MPI_Win_complete(window.win);
        steps.wait_for(step);
      } else if (rank() == target) {
        if (!fence) MPI_Win_post(other, 0, window.win);
        steps.wait_for(step - 1);  // outside MPI
        fence ? MPI_Win_fence(0, window.win) : MPI_Win_wait(window.win);
        CHECK(own(window, 0) == load.operations);
        CHECK(own(window, static_cast<std::size_t>(load.words) - 1) == load.operations);
        steps.reach(step);
      } else if (fence) {
        MPI_Win_fence(0, window.win);
      }
      MPI_Group_free(&other);
      MPI_Group_free(&world);
    }
  }
}

TEST_CASE("Passive target: accumulates need no call of it") {
  if (size() < 2 || setting("OVERLAP_TEST_ACCUMULATES", 1) == 0) return;
  Steps steps;
  int step = 0;
  for (const Kind kind : kinds()) {
    CAPTURE(name_of(kind));
    Array<Word> window(words, 10, kind);
    meet(window);
    std::vector<Word> data(words, 5), old(words, 0), seen(words, 0);
    Word fetched = 0, swapped = 0;
    const Word one = 1, sixteen = 16, hundred = 100;
    const int count = static_cast<int>(words);
    while_target_is_away(window, steps, step, [&] {
      MPI_Accumulate(data.data(), count, MPI_INT64_T, target, window.index(target, 0), count,
                     MPI_INT64_T, MPI_SUM, window.win);
      MPI_Get_accumulate(nullptr, 0, MPI_INT64_T, seen.data(), count, MPI_INT64_T, target,
                         window.index(target, 0), count, MPI_INT64_T, MPI_NO_OP, window.win);
      MPI_Get_accumulate(data.data(), count, MPI_INT64_T, old.data(), count, MPI_INT64_T, target,
                         window.index(target, 0), count, MPI_INT64_T, MPI_REPLACE, window.win);
      MPI_Win_flush(target, window.win);
      MPI_Fetch_and_op(&one, &fetched, MPI_INT64_T, target, window.index(target, 0), MPI_SUM,
                       window.win);
      MPI_Accumulate(&data[0], 2, MPI_INT64_T, target, window.index(target, 0), 2, MPI_INT64_T,
                     MPI_PROD, window.win);
      MPI_Accumulate(&sixteen, 1, MPI_INT64_T, target, window.index(target, 1), 1, MPI_INT64_T,
                     MPI_REPLACE, window.win);
      MPI_Compare_and_swap(&hundred, &sixteen, &swapped, MPI_INT64_T, target,
                           window.index(target, 1), window.win);
    });
    if (rank() == origin) {
      CHECK(seen == std::vector<Word>(words, 15));
      CHECK(old == std::vector<Word>(words, 15));
      CHECK(fetched == 5);
      CHECK(swapped == 16);
    }
    if (rank() == target) {
      CHECK(own(window, 0) == 30);
      CHECK(own(window, 1) == 100);
      CHECK(own(window, words - 1) == 5);
    }
  }
}

TEST_CASE("Passive target: data with gaps needs no call of it") {
  if (size() < 2 || setting("OVERLAP_TEST_ACCUMULATES", 1) == 0) return;
  Steps steps;
  int step = 0;
  MPI_Datatype every_third = MPI_DATATYPE_NULL;
  constexpr int count = 1000;
  MPI_Type_vector(count, 1, 3, MPI_INT64_T, &every_third);
  MPI_Type_commit(&every_third);
  for (const Kind kind : kinds()) {
    CAPTURE(name_of(kind));
    Array<Word> window(words, 1, kind);
    meet(window);
    std::vector<Word> data(words, 4), back(words, 0), packed(count, 0);
    while_target_is_away(window, steps, step, [&] {
      MPI_Put(data.data(), 1, every_third, target, window.index(target, 0), 1, every_third,
              window.win);
      MPI_Win_flush(target, window.win);
      MPI_Accumulate(data.data(), 1, every_third, target, window.index(target, 0), count,
                     MPI_INT64_T, MPI_SUM, window.win);
      MPI_Win_flush(target, window.win);
      MPI_Get(back.data(), 1, every_third, target, window.index(target, 0), 1, every_third,
              window.win);
      MPI_Get(packed.data(), count, MPI_INT64_T, target, window.index(target, 0), 1, every_third,
              window.win);
    });
    if (rank() == origin) {
      CHECK((back[0] == 8 && back[1] == 0 && back[3] == 8 && back[2997] == 4));
      CHECK((packed[0] == 8 && packed[333] == 8 && packed[334] == 4));
    }
    if (rank() == target) {
      CHECK((own(window, 0) == 8 && own(window, 1) == 5 && own(window, 999) == 8));
      CHECK((own(window, 1000) == 1 && own(window, 1002) == 4));
    }
  }
  MPI_Type_free(&every_third);
}

TEST_CASE("Passive target: a page between rows that may not be read") {
  if (size() < 2 || setting("OVERLAP_TEST_ACCUMULATES", 1) == 0) return;
  Steps steps;
  int step = 0;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t row_words = page / sizeof(Word);
  void* const mapped =
      mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped != MAP_FAILED);
  auto* const memory = static_cast<Word*>(mapped);
  memory[row_words - 1] = 3;
  memory[2 * row_words] = 4;
  REQUIRE(mprotect(memory + row_words, page, PROT_NONE) == 0);
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_create(memory, static_cast<MPI_Aint>(3 * page), sizeof(Word), MPI_INFO_NULL,
                 MPI_COMM_WORLD, &win);
  MPI_Datatype two_rows = MPI_DATATYPE_NULL;
  const int lengths[2] = {static_cast<int>(row_words), static_cast<int>(row_words)};
  const int places[2] = {0, static_cast<int>(2 * row_words)};
  MPI_Type_indexed(2, lengths, places, MPI_INT64_T, &two_rows);
  MPI_Type_commit(&two_rows);
  const std::vector<Word> ones(2 * row_words, 1);
  std::vector<Word> back(2 * row_words, 0);
  const int count = static_cast<int>(back.size());
  MPI_Barrier(MPI_COMM_WORLD);
  step += 2;
  if (rank() == origin) {
    steps.wait_for(step - 1);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
    MPI_Accumulate(ones.data(), count, MPI_INT64_T, target, 0, 1, two_rows, MPI_SUM, win);
    MPI_Win_flush(target, win);
    MPI_Get(back.data(), count, MPI_INT64_T, target, 0, 1, two_rows, win);
    MPI_Win_unlock(target, win);
    steps.reach(step);
    CHECK((back[0] == 1 && back[row_words - 1] == 4 && back[row_words] == 5));
  } else if (rank() == target) {
    steps.reach(step - 1);
    steps.wait_for(step);
    CHECK((memory[row_words - 1] == 4 && memory[2 * row_words] == 5));
  }
  MPI_Type_free(&two_rows);
  MPI_Win_free(&win);
  munmap(mapped, 3 * page);
}

TEST_CASE("Passive target: behind an access epoch one lock asks it, later ones do not") {
  if (size() < 2) return;
  Steps steps;
  int step = 0;
  Array<Word> window(1, 7);
  meet(window);
  const Word eight = 8;
  Word back = 0;
  if (rank() == origin) {
    const Group to(window.win, {target});
    MPI_Win_start(to, 0, window.win);
    put(window, eight, target, 0);
    MPI_Win_complete(window.win);
  } else if (rank() == target) {
    const Group from(window.win, {origin});
    MPI_Win_post(from, 0, window.win);
    MPI_Win_wait(window.win);
  }
  meet(window);
  while_target_is_away(window, steps, step, [&] { get(window, back, target, 0); });
  if (rank() == origin) CHECK(back == 8);
}
