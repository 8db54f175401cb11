// Field: one-sided communication: locks of several ranks and windows at random, asked for in one
// order everywhere, given back in any.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"
#include "scene.hpp"

#include <algorithm>
#include <memory>
#include <random>
#include <span>
#include <tuple>

using namespace overlap::test;

namespace {

/// Word 0 is counted up by those that lock exclusively, word 1 by all.
struct Counted {
  explicit Counted(Kind kind, MPI_Comm on) : comm(on), window(2, 0, kind, on) {
    expected.resize(2 * static_cast<std::size_t>(window.ranks));
  }
  void count(int to, std::size_t word) { ++expected[2 * static_cast<std::size_t>(to) + word]; }
  /// A lock that was not exclusive shows here.
  void read_and_write(int to) {
    Word value = -1;
    get(window, value, to, 0);
    MPI_Win_flush(to, window.win);
    written = value + 1;
    put(window, written, to, 0);
    MPI_Win_flush(to, window.win);
    count(to, 0);
  }
  void add_one(int to) {
    add(window, one, to, 1);
    count(to, 1);
  }
  bool is_right() {
    std::vector<Word> all(expected.size());
    MPI_Allreduce(expected.data(), all.data(), static_cast<int>(all.size()), MPI_INT64_T, MPI_SUM,
                  comm);
    const auto me = static_cast<std::size_t>(window.me);
    return own(window, 0) == all[2 * me] && own(window, 1) == all[2 * me + 1];
  }

  MPI_Comm comm;
  Array<Word> window;
  std::vector<Word> expected;  ///< [target, word], by this process
  Word written = 0;
  const Word one = 1;
};

struct Lock {
  Counted* at = nullptr;
  std::size_t number = 0;  ///< of the window
  int to = 0;
  bool is_exclusive = false;
};

/// Some locks, by window and rank.
std::vector<Lock> draw(std::span<const std::unique_ptr<Counted>> windows, std::mt19937& random) {
  std::vector<Lock> locks(1 + random() % 6);
  for (Lock& each : locks) {
    each.number = random() % (1 + random() % windows.size());
    each.at = windows[each.number].get();
    each.to = static_cast<int>(random() % static_cast<unsigned>(each.at->window.ranks));
    each.is_exclusive = random() % 3 != 0;
  }
  const auto place = [](const Lock& each) { return std::tuple(each.number, each.to); };
  std::ranges::sort(locks, {}, place);
  const auto again = std::ranges::unique(locks, {}, place);
  locks.erase(again.begin(), again.end());
  return locks;
}

void take_turn(std::vector<Lock> locks, std::mt19937& random) {
  for (const Lock& each : locks) {
    MPI_Win_lock(each.is_exclusive ? MPI_LOCK_EXCLUSIVE : MPI_LOCK_SHARED, each.to, 0,
                 each.at->window.win);
    if (random() % 3 == 0) compute(std::chrono::microseconds(random() % 300));
    if (random() % 4 == 0 && each.is_exclusive)
      each.at->read_and_write(each.to);
    else if (random() % 2 == 0)
      each.at->add_one(each.to);
  }
  const bool waits = random() % 2 == 0;  // until all are there
  for (const Lock& each : locks)
    if (waits && each.is_exclusive) each.at->read_and_write(each.to);
  std::ranges::shuffle(locks, random);
  for (const Lock& each : locks) MPI_Win_unlock(each.to, each.at->window.win);
}

}  // namespace

TEST_CASE("Locks of several ranks and windows at random") {
  MPI_Comm comms[4] = {MPI_COMM_WORLD};
  MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
  MPI_Comm_split(MPI_COMM_WORLD, 0, -rank(), &comms[2]);
  MPI_Comm_split(MPI_COMM_WORLD, rank() % 2, rank(), &comms[3]);
  for (unsigned seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    std::vector<std::unique_ptr<Counted>> windows;
    std::mt19937 same(seed), random(1000 * seed + static_cast<unsigned>(rank()));
    for (MPI_Comm comm : comms) {
      const Kind kinds[] = {Kind::create, Kind::dynamic, Kind::allocate};
      const Kind kind = kinds[seed % 2 == 0 ? 0 : same() % 3];
      windows.push_back(std::make_unique<Counted>(kind, comm));
    }
    for (int turn = 0; turn < 300; ++turn) take_turn(draw(windows, random), random);
    MPI_Barrier(MPI_COMM_WORLD);
    for (const auto& each : windows) CHECK(each->is_right());
    MPI_Barrier(MPI_COMM_WORLD);
  }
  for (MPI_Comm& comm : std::span(comms).subspan(1)) MPI_Comm_free(&comm);
}
