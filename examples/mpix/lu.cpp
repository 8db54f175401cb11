// LU decomposition with partial pivoting, its columns dealt out in blocks: the owner of a block
// factors it and puts it into the memory of all others, which update their columns with it.
//
//   mpicxx -O2 lu.cpp -o lu $(pkg-config --cflags --libs mpix_overlap)
//   mpirun -n 4 --mca pml speculative --mca osc newrma ./lu nonblocking 512
//
// Who owns the next block updates and factors that one first, then the rest. With blocking calls it
// waits in MPI_Win_complete until the slowest rank is ready for the block; with non-blocking ones
// it goes on with its own columns.
// SPDX-License-Identifier: BSD-3-Clause
#include "example.hpp"

#include <algorithm>
#include <cmath>

using namespace example;

namespace {

constexpr long width = 16;  // columns of a block

double entry(long n, long i, long j) {
  return static_cast<double>(mix(static_cast<std::uint64_t>(i * n + j)) >> 11) * 0x1p-53 - 0.5;
}

class Matrix {
 public:
  Matrix(long n, Options& options) : n_(n), columns_(static_cast<std::size_t>(n * n)) {
    for (long j = 0; j < n; ++j) {
      if (owner(j / width) != rank) continue;
      for (long i = 0; i < n; ++i) column(j)[i] = entry(n, i, j);
    }
    win_ = allocate(static_cast<std::size_t>(2 * block_size()), blocks_);
    settle(options, win_);
    nonblocking_ = options.nonblocking;
    MPI_Win_get_group(win_, &all_);
    std::vector<int> others;
    for (int i = 0; i < ranks; ++i)
      if (i != rank) others.push_back(i);
    MPI_Group_incl(all_, ranks - 1, others.data(), &others_);
  }
  ~Matrix() {
    MPI_Group_free(&others_);
    MPI_Group_free(&all_);
    MPI_Win_free(&win_);
  }
  Matrix(const Matrix&) = delete;
  Matrix& operator=(const Matrix&) = delete;

  void decompose() {
    expect(0);
    if (owner(0) == rank) factor_and_send(0);
    for (long k = 0; k < count(); ++k) {
      await(k);
      const long next = k + 1;
      if (next < count()) expect(next);
      if (next < count() && owner(next) == rank) {
        update(k, next);
        factor_and_send(next);
      }
      for (long b = 0; b < count(); ++b)
        if (b != k && b != next && owner(b) == rank) update(k, b);
    }
    for (MPI_Request& each : requests_) MPI_Wait(&each, MPI_STATUS_IGNORE);
  }

  /// Largest difference of an element of L U from that of the permuted matrix; at rank 0.
  double error() {
    for (long j = 0; j < n_; ++j)
      MPI_Bcast(column(j), static_cast<int>(n_), MPI_DOUBLE, owner(j / width), MPI_COMM_WORLD);
    std::vector<long> row(static_cast<std::size_t>(n_));
    for (long i = 0; i < n_; ++i) row[static_cast<std::size_t>(i)] = i;
    for (std::size_t i = 0; i < pivots_.size(); ++i)
      std::swap(row[i], row[static_cast<std::size_t>(pivots_[i])]);
    double worst = 0;
    for (long j = 0; rank == 0 && j < n_; ++j)
      for (long i = 0; i < n_; ++i) {
        double sum = i <= j ? column(j)[i] : 0;
        for (long k = 0; k <= std::min(i - 1, j); ++k) sum += column(k)[i] * column(j)[k];
        worst = std::max(worst, std::fabs(sum - entry(n_, row[static_cast<std::size_t>(i)], j)));
      }
    return worst;
  }

 private:
  [[nodiscard]] long count() const { return (n_ + width - 1) / width; }
  [[nodiscard]] int owner(long block) const { return static_cast<int>(block % ranks); }
  [[nodiscard]] long first(long block) const { return block * width; }
  [[nodiscard]] long end(long block) const { return std::min(n_, first(block + 1)); }
  double* column(long j) { return &columns_[static_cast<std::size_t>(j * n_)]; }
  [[nodiscard]] long block_size() const { return width * (n_ + 1); }
  /// Columns of a factored block in the window, behind them its pivots; two blocks have room.
  double* slot(long block) { return blocks_ + block % 2 * block_size(); }
  MPI_Request& request(long block) { return requests_[block % 2]; }

  /// Be ready for a block of another rank.
  void expect(long block) {
    MPI_Wait(&request(block), MPI_STATUS_IGNORE);  // what was sent from there
    if (owner(block) == rank) return;
    const int from = owner(block);
    MPI_Group sender = MPI_GROUP_NULL;
    MPI_Group_incl(all_, 1, &from, &sender);
    MPI_Win_post(sender, 0, win_);
    MPI_Group_free(&sender);
    if (nonblocking_) MPIX_Win_iwait(win_, &request(block));
  }
  void await(long block) {
    if (owner(block) != rank) {
      if (nonblocking_)
        MPI_Wait(&request(block), MPI_STATUS_IGNORE);
      else
        MPI_Win_wait(win_);
    }
    for (long i = 0; i < end(block) - first(block); ++i)
      pivots_.push_back(static_cast<long>(slot(block)[width * n_ + i]));
  }

  void factor_and_send(long block) {
    double* const pivots = slot(block) + width * n_;
    for (long j = first(block); j < end(block); ++j) {
      double* const pivot_column = column(j);
      const long best =
          std::max_element(pivot_column + j, pivot_column + n_,
                           [](double a, double b) { return std::fabs(a) < std::fabs(b); }) -
          pivot_column;
      pivots[j - first(block)] = static_cast<double>(best);
      for (long k = first(block); k < end(block); ++k) std::swap(column(k)[j], column(k)[best]);
      for (long i = j + 1; i < n_; ++i) pivot_column[i] /= pivot_column[j];
      for (long k = j + 1; k < end(block); ++k) subtract(pivot_column, column(k), j);
    }
    for (long j = first(block); j < end(block); ++j)
      std::copy_n(column(j), n_, slot(block) + (j - first(block)) * n_);
    if (ranks == 1) return;
    MPI_Win_start(others_, 0, win_);
    for (int to = 0; to < ranks; ++to)
      if (to != rank)
        MPI_Put(slot(block), static_cast<int>(block_size()), MPI_DOUBLE, to,
                block % 2 * block_size(), static_cast<int>(block_size()), MPI_DOUBLE, win_);
    if (nonblocking_)
      MPIX_Win_icomplete(win_, &request(block));
    else
      MPI_Win_complete(win_);
  }

  /// Apply the factored block k to the columns of block b.
  void update(long k, long b) {
    for (long j = first(b); j < end(b); ++j)
      for (long i = first(k); i < end(k); ++i)
        std::swap(column(j)[i], column(j)[pivots_[static_cast<std::size_t>(i)]]);
    if (b < k) return;
    for (long i = first(k); i < end(k); ++i)
      for (long j = first(b); j < end(b); ++j)
        subtract(slot(k) + (i - first(k)) * n_, column(j), i);
  }
  void subtract(const double* from, double* to, long pivot) const {
    const double factor = to[pivot];
    for (long i = pivot + 1; i < n_; ++i) to[i] -= from[i] * factor;
  }

  long n_;
  std::vector<double> columns_;  ///< [j * n + i]; those of other ranks are not used
  std::vector<long> pivots_;
  bool nonblocking_ = false;
  MPI_Win win_ = MPI_WIN_NULL;
  MPI_Group all_ = MPI_GROUP_NULL, others_ = MPI_GROUP_NULL;
  double* blocks_ = nullptr;
  MPI_Request requests_[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};  ///< of the last use of a slot
};

}  // namespace

int main(int argc, char** argv) {
  Options options = start(argc, argv, 384);
  const long n = options.number;
  double seconds = 0, error = 0;
  {
    Matrix matrix(n, options);
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime();
    matrix.decompose();
    MPI_Barrier(MPI_COMM_WORLD);
    seconds = MPI_Wtime() - seconds;
    error = matrix.error();
  }
  return finish(options, "LU decomposition", seconds, error < 1e-12 * static_cast<double>(n));
}
