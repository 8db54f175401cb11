// Massive random updates: every rank adds to groups of words of random ranks, each group under an
// exclusive lock of its own.
//
//   mpicxx -O2 updates.cpp -o updates $(pkg-config --cflags --libs mpix_overlap)
//   mpirun -n 4 --mca pml speculative --mca osc newrma ./updates nonblocking 20000
//
// With blocking calls each update waits for its lock and its end. With non-blocking ones a rank has
// many of them in flight.
// SPDX-License-Identifier: BSD-3-Clause
#include "example.hpp"

using namespace example;

namespace {

constexpr long groups = 1024;   // of words, at each rank
constexpr long group_size = 4;  // words that are changed together
constexpr long in_flight = 64;

struct Update {
  int target;
  long group;
  std::int64_t add[group_size];
};

Update draw(int origin, long index) {
  const std::uint64_t random =
      mix((static_cast<std::uint64_t>(origin) << 40) + static_cast<std::uint64_t>(index));
  Update update{};
  update.target = static_cast<int>(random % static_cast<std::uint64_t>(ranks));
  update.group = static_cast<long>(random >> 20) & (groups - 1);
  for (long i = 0; i < group_size; ++i)
    update.add[i] = static_cast<std::int64_t>(random >> 44) - (i << 19);
  return update;
}

void accumulate(const Update& update, MPI_Win win) {
  MPI_Accumulate(update.add, group_size, MPI_INT64_T, update.target, update.group * group_size,
                 group_size, MPI_INT64_T, MPI_SUM, win);
}

void update_blocking(long count, MPI_Win win) {
  for (long i = 0; i < count; ++i) {
    const Update update = draw(rank, i);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, update.target, 0, win);
    accumulate(update, win);
    MPI_Win_unlock(update.target, win);
  }
}

void update_nonblocking(long count, MPI_Win win) {
  std::vector<Update> updates(in_flight);
  std::vector<MPI_Request> ended(in_flight, MPI_REQUEST_NULL);
  for (long i = 0; i < count; ++i) {
    const auto place = static_cast<std::size_t>(i % in_flight);
    MPI_Wait(&ended[place], MPI_STATUS_IGNORE);
    Update& update = updates[place] = draw(rank, i);
    MPI_Request locked = MPI_REQUEST_NULL;
    MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, update.target, 0, win, &locked);
    MPI_Request_free(&locked);
    accumulate(update, win);
    MPIX_Win_iunlock(update.target, win, &ended[place]);
  }
  MPI_Waitall(in_flight, ended.data(), MPI_STATUSES_IGNORE);
}

/// Is the own memory what all updates of all ranks make of it?
bool check(const std::int64_t* words, long count) {
  std::vector<std::int64_t> expected(groups * group_size, 0);
  for (int origin = 0; origin < ranks; ++origin)
    for (long i = 0; i < count; ++i) {
      const Update update = draw(origin, i);
      if (update.target != rank) continue;
      for (long j = 0; j < group_size; ++j)
        expected[static_cast<std::size_t>(update.group * group_size + j)] += update.add[j];
    }
  return std::memcmp(words, expected.data(), expected.size() * sizeof expected[0]) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = start(argc, argv, 5000);
  std::int64_t* words = nullptr;
  MPI_Win win = allocate(groups * group_size, words);
  settle(options, win);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  std::memset(words, 0, groups * group_size * sizeof *words);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  double seconds = MPI_Wtime();
  options.nonblocking ? update_nonblocking(options.number, win)
                      : update_blocking(options.number, win);
  MPI_Barrier(MPI_COMM_WORLD);
  seconds = MPI_Wtime() - seconds;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  const bool right = check(words, options.number);
  MPI_Win_unlock(rank, win);
  MPI_Win_free(&win);
  return finish(options, "random updates", seconds, right);
}
