// A global array as libraries like Global Arrays keep it: a matrix that is dealt out in tiles, one
// per rank. Each rank gets patches of it, wherever they lie, computes with them, and adds the
// results to the same patches of a second matrix, all under one lock_all.
//
//   mpicxx -O2 patches.cpp -o patches $(pkg-config --cflags --libs mpix_overlap)
//   mpirun -n 4 --mca pml speculative --mca osc newrma ./patches nonblocking 500
//
// With non-blocking calls the next patch comes while a rank computes with the one before.
// SPDX-License-Identifier: BSD-3-Clause
#include "example.hpp"

#include <algorithm>

using namespace example;

namespace {

constexpr int side = 96;  // of a tile
using Element = std::int64_t;

/// Rows and columns of the whole matrix; [begin, end).
struct Patch {
  int top, bottom, left, right;
  [[nodiscard]] int rows() const { return bottom - top; }
  [[nodiscard]] int columns() const { return right - left; }
};

/// Tiles lie in a row of `ranks` tiles.
Patch draw(int origin, long index) {
  const std::uint64_t random =
      mix((static_cast<std::uint64_t>(origin) << 40) + static_cast<std::uint64_t>(index));
  const int width = ranks * side;
  Patch patch{};
  patch.top = static_cast<int>(random % (side - 1));
  patch.bottom =
      patch.top + 1 + static_cast<int>((random >> 16) % static_cast<unsigned>(side - patch.top));
  patch.left = static_cast<int>((random >> 32) % static_cast<unsigned>(width - 1));
  patch.right = patch.left + 1 +
                static_cast<int>((random >> 48) %
                                 static_cast<unsigned>(std::min(width - patch.left, 2 * side)));
  return patch;
}

Element source_at(int row, int column) { return row * 1000003 + column * 7; }
Element result_of(Element element) { return element * 3 + 1; }

/// Both matrices at a rank: tile of the source, behind it that of the sums.
class Array {
 public:
  explicit Array(Options& options) : win_(allocate(2 * side * side, tiles_)) {
    settle(options, win_);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win_);
    for (int row = 0; row < side; ++row)
      for (int column = 0; column < side; ++column) {
        tiles_[row * side + column] = source_at(row, rank * side + column);
        tiles_[side * side + row * side + column] = 0;
      }
    MPI_Win_unlock(rank, win_);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  ~Array() { MPI_Win_free(&win_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  [[nodiscard]] MPI_Win win() const { return win_; }
  [[nodiscard]] Element sum_at(int row, int column) const {
    return tiles_[side * side + row * side + column];
  }

  void get(const Patch& patch, std::vector<Element>& into) const {
    into.assign(static_cast<std::size_t>(patch.rows() * patch.columns()), -1);
    on_tiles(patch, 0, [&](int target, MPI_Datatype local, MPI_Datatype remote) {
      MPI_Get(into.data(), 1, local, target, 0, 1, remote, win_);
    });
  }
  void add(const Patch& patch, const std::vector<Element>& from) const {
    on_tiles(patch, side * side, [&](int target, MPI_Datatype local, MPI_Datatype remote) {
      MPI_Accumulate(from.data(), 1, local, target, 0, 1, remote, MPI_SUM, win_);
    });
  }

 private:
  /// The parts of a patch that lie in one tile, as parts of the buffer and of the window.
  template <class Call>
  void on_tiles(const Patch& patch, int offset, Call&& call) const {
    for (int target = patch.left / side; target * side < patch.right; ++target) {
      const int from = std::max(patch.left, target * side);
      const int to = std::min(patch.right, (target + 1) * side);
      const int part[] = {patch.rows(), to - from};
      const int buffer[] = {patch.rows(), patch.columns()}, buffer_at[] = {0, from - patch.left};
      const int tile[] = {2 * side, side};
      const int tile_at[] = {offset / side + patch.top, from - target * side};
      MPI_Datatype local = MPI_DATATYPE_NULL, remote = MPI_DATATYPE_NULL;
      MPI_Type_create_subarray(2, buffer, part, buffer_at, MPI_ORDER_C, MPI_INT64_T, &local);
      MPI_Type_create_subarray(2, tile, part, tile_at, MPI_ORDER_C, MPI_INT64_T, &remote);
      MPI_Type_commit(&local);
      MPI_Type_commit(&remote);
      call(target, local, remote);
      MPI_Type_free(&local);
      MPI_Type_free(&remote);
    }
  }

  Element* tiles_ = nullptr;
  MPI_Win win_;
};

bool compute(const Patch& patch, std::vector<Element>& data) {
  bool right = true;
  auto element = data.begin();
  for (int row = patch.top; row < patch.bottom; ++row)
    for (int column = patch.left; column < patch.right; ++column, ++element) {
      right = right && *element == source_at(row, column);
      *element = result_of(*element);
    }
  return right;
}

bool work_blocking(const Array& array, long count) {
  bool right = true;
  std::vector<Element> data;
  for (long i = 0; i < count; ++i) {
    const Patch patch = draw(rank, i);
    array.get(patch, data);
    MPI_Win_flush_all(array.win());
    right = compute(patch, data) && right;
    array.add(patch, data);
    MPI_Win_flush_all(array.win());
  }
  return right;
}

bool work_nonblocking(const Array& array, long count) {
  constexpr int buffers = 3;  // one comes, one is computed with, one goes
  bool right = true;
  std::vector<Element> data[buffers];
  MPI_Request done[buffers] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  for (long i = 0; i <= count; ++i) {
    if (i < count) {
      MPI_Wait(&done[i % buffers], MPI_STATUS_IGNORE);
      array.get(draw(rank, i), data[i % buffers]);
      MPIX_Win_iflush_all(array.win(), &done[i % buffers]);
    }
    if (i == 0) continue;
    const long now = i - 1;
    const Patch patch = draw(rank, now);
    MPI_Wait(&done[now % buffers], MPI_STATUS_IGNORE);
    right = compute(patch, data[now % buffers]) && right;
    array.add(patch, data[now % buffers]);
    MPIX_Win_iflush_all(array.win(), &done[now % buffers]);
  }
  MPI_Waitall(buffers, done, MPI_STATUSES_IGNORE);
  return right;
}

/// Is the own tile of the sums what the patches of all ranks make of it?
bool check(const Array& array, long count) {
  std::vector<Element> times(side * side, 0);
  for (int origin = 0; origin < ranks; ++origin)
    for (long i = 0; i < count; ++i) {
      const Patch patch = draw(origin, i);
      for (int row = patch.top; row < patch.bottom; ++row)
        for (int column = std::max(patch.left - rank * side, 0);
             column < std::min(patch.right - rank * side, side); ++column)
          ++times[static_cast<std::size_t>(row * side + column)];
    }
  for (int row = 0; row < side; ++row)
    for (int column = 0; column < side; ++column)
      if (array.sum_at(row, column) != times[static_cast<std::size_t>(row * side + column)] *
                                           result_of(source_at(row, rank * side + column)))
        return false;
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options options = start(argc, argv, 200);
  bool right = true;
  double seconds = 0;
  {
    const Array array(options);
    MPI_Win_lock_all(0, array.win());
    seconds = MPI_Wtime();
    right = options.nonblocking ? work_nonblocking(array, options.number)
                                : work_blocking(array, options.number);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime() - seconds;
    MPI_Win_sync(array.win());
    right = check(array, options.number) && right;
    MPI_Win_unlock_all(array.win());
  }
  return finish(options, "patches of a global array", seconds, right);
}
