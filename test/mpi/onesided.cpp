// One-sided calls over components that are built on point-to-point (osc/pt2pt): they read the
// status of completed sends and communicate in completion callbacks.
// SPDX-License-Identifier: BSD-3-Clause
#include "mpi_test.hpp"

using namespace overlap::test;

namespace {

struct Window {
  std::vector<long long> words;
  MPI_Win win = MPI_WIN_NULL;

  explicit Window(std::size_t count) : words(count, 0) {
    MPI_Win_create(words.data(), static_cast<MPI_Aint>(count * sizeof words[0]), sizeof words[0],
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  }
  ~Window() { MPI_Win_free(&win); }
};

}  // namespace

TEST_CASE("Fetch_and_op under a lock counts every rank's turn once") {
  constexpr int turns = 50;
  Window window(1);
  MPI_Barrier(MPI_COMM_WORLD);
  const long long one = 1;
  long long last = -1;
  for (int turn = 0; turn < turns; ++turn) {
    long long before = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
    MPI_Fetch_and_op(&one, &before, MPI_LONG_LONG, 0, 0, MPI_SUM, window.win);
    MPI_Win_unlock(0, window.win);
    REQUIRE(before > last);
    last = before;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
  long long sum = 0;
  MPI_Get(&sum, 1, MPI_LONG_LONG, 0, 0, 1, MPI_LONG_LONG, window.win);
  MPI_Win_unlock(0, window.win);
  CHECK(sum == static_cast<long long>(turns) * size());
}

TEST_CASE("Get_accumulate and flush of short and long vectors") {
  for (const int count : {1, 100, 60000}) {
    Window window(static_cast<std::size_t>(count));
    const std::vector<long long> add(static_cast<std::size_t>(count), rank() + 1);
    std::vector<long long> before(static_cast<std::size_t>(count), -1);
    MPI_Win_lock_all(0, window.win);
    MPI_Get_accumulate(add.data(), count, MPI_LONG_LONG, before.data(), count, MPI_LONG_LONG, 0, 0,
                       count, MPI_LONG_LONG, MPI_SUM, window.win);
    MPI_Win_flush(0, window.win);
    MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    for (const long long value : before) REQUIRE(value >= 0);
    if (rank() == 0) {
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
      const long long expected = static_cast<long long>(size()) * (size() + 1) / 2;
      for (const long long value : window.words) REQUIRE(value == expected);
      MPI_Win_unlock(0, window.win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
}

TEST_CASE("Puts and accumulates between fences") {
  constexpr int count = 2000;
  Window window(count);
  const int right = (rank() + 1) % size(), left = (rank() + size() - 1) % size();
  const std::vector<long long> mine(count, rank() + 7);
  MPI_Win_fence(0, window.win);
  MPI_Put(mine.data(), count, MPI_LONG_LONG, right, 0, count, MPI_LONG_LONG, window.win);
  MPI_Win_fence(0, window.win);
  for (const long long value : window.words) REQUIRE(value == left + 7);
  MPI_Win_fence(0, window.win);
  for (int to = 0; to < size(); ++to)
    MPI_Accumulate(mine.data(), count, MPI_LONG_LONG, to, 0, count, MPI_LONG_LONG, MPI_SUM,
                   window.win);
  MPI_Win_fence(0, window.win);
  const long long all = 7LL * size() + static_cast<long long>(size()) * (size() - 1) / 2;
  for (const long long value : window.words) REQUIRE(value == left + 7 + all);
}
