// Question: how long does a whole program take that exchanges halos while it computes, and in which
// calls does it wait?
//
// Jacobi iterations on a plane of doubles that is cut into strips, one per rank:
//
//   loop
//     MPI_Irecv from both neighbours
//     MPI_Isend first and last line to both neighbours
//     compute the inner lines
//     MPI_Waitall
//     compute the first and the last line
//
// Expected (before the first run): with ob1 the halos move in MPI_Waitall, an iteration takes
// computation + transfer. With speculative on a network, MPI_Waitall costs next to nothing and an
// iteration takes the longer of the two. Over shared memory the copy is work for a processor, and
// without a spare core nothing is gained.
//
// The plane holds i + j, which an iteration leaves exactly as it is: any wrong byte of a halo
// shows, and all of them are checked at the end. --lines sets the computation: lines of each rank.
// With --compute sleep a rank sleeps as long as its inner lines take, which stands for computing
// them on another core; the plane then changes in its outer lines only. A sample is one iteration
// on rank 0; processor is the mean processor time of all ranks and their threads for an iteration.
// SPDX-License-Identifier: BSD-3-Clause
#include <utility>

#include "bench.hpp"

using namespace bench;

namespace {

class Strip {
 public:
  Strip(int rank, int ranks, long columns, long lines)
      : columns_(columns),
        lines_(lines),
        up_(rank == 0 ? MPI_PROC_NULL : rank - 1),
        down_(rank + 1 == ranks ? MPI_PROC_NULL : rank + 1),
        first_(rank * lines),
        now_(cells()),
        next_(cells()) {
    for (long i = 0; i < lines_ + 2; ++i)
      for (long j = 0; j < columns_; ++j) now_[at(i, j)] = next_[at(i, j)] = value(i, j);
  }

  void post(MPI_Request* requests) {
    receive(0, up_, 1, &requests[0]);
    receive(lines_ + 1, down_, 2, &requests[1]);
    send(1, up_, 2, &requests[2]);
    send(lines_, down_, 1, &requests[3]);
  }
  void inner() { relax(2, lines_ - 1); }
  void outer() {
    relax(1, 1);
    relax(lines_, lines_);
    std::swap(now_, next_);
  }
  /// Every cell as it began; halos too.
  void check() const {
    for (long i = up_ == MPI_PROC_NULL ? 1 : 0; i <= lines_ + (down_ == MPI_PROC_NULL ? 0 : 1); ++i)
      for (long j = 0; j < columns_; ++j)
        if (now_[at(i, j)] != value(i, j)) {
          std::fprintf(stderr, "halo: line %ld column %ld is %g instead of %g\n", first_ + i, j,
                       now_[at(i, j)], value(i, j));
          MPI_Abort(MPI_COMM_WORLD, 3);
        }
  }

 private:
  std::size_t cells() const { return static_cast<std::size_t>((lines_ + 2) * columns_); }
  std::size_t at(long i, long j) const { return static_cast<std::size_t>(i * columns_ + j); }
  double value(long i, long j) const { return static_cast<double>(first_ + i + j); }
  void receive(long line, int from, int tag, MPI_Request* request) {
    MPI_Irecv(&now_[at(line, 0)], static_cast<int>(columns_), MPI_DOUBLE, from, tag, MPI_COMM_WORLD,
              request);
  }
  void send(long line, int to, int tag, MPI_Request* request) {
    MPI_Isend(&now_[at(line, 0)], static_cast<int>(columns_), MPI_DOUBLE, to, tag, MPI_COMM_WORLD,
              request);
  }
  void relax(long from, long to) {
    for (long i = from; i <= to; ++i)
      for (long j = 1; j < columns_ - 1; ++j)
        next_[at(i, j)] = 0.25 * (now_[at(i - 1, j)] + now_[at(i + 1, j)] + now_[at(i, j - 1)] +
                                  now_[at(i, j + 1)]);
  }

  long columns_, lines_;
  int up_, down_;
  long first_;
  std::vector<double> now_, next_;
};

struct Profile {
  Samples iteration, post, computation, waitall;
  double processor_us = 0;  // of this rank for one iteration
};

struct Inner {
  Compute how;
  double sleep_us;
};

/// How long the inner lines take while all ranks compute theirs and nothing is sent.
double inner_us(Strip& strip) {
  Samples samples;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 8; ++i) {
    const double begin = now_us();
    strip.inner();
    samples.add(now_us() - begin);
  }
  double median = samples.median();
  MPI_Bcast(&median, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return median;
}

Profile run(Strip& strip, Inner inner, long iterations, double budget_ms) {
  Profile profile;
  MPI_Barrier(MPI_COMM_WORLD);
  const double before_us = processor_us();
  for (Pace pace(iterations, budget_ms); pace.next();) {
    MPI_Request requests[4];
    const double begin = now_us();
    strip.post(requests);
    const double posted = now_us();
    inner.how == Compute::spin ? strip.inner() : sleep_until_us(posted + inner.sleep_us);
    const double computed = now_us();
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    const double waited = now_us();
    strip.outer();
    const double end = now_us();
    profile.iteration.add(end - begin);
    profile.post.add(posted - begin);
    profile.computation.add(computed - posted + end - waited);
    profile.waitall.add(waited - computed);
  }
  profile.processor_us =
      (processor_us() - before_us) / static_cast<double>(profile.iteration.values.size());
  return profile;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "1m");
  const long lines = std::max(2L, static_cast<long>(options.number("lines", 12)));
  const double budget_ms = options.number("budget-ms", 1000);
  const long most = static_cast<long>(options.number("iterations", 200));
  const Compute how = options.compute();
  options.end();
  print_compute(how, rank);

  for (const std::size_t bytes : sizes) {
    const long columns = static_cast<long>(bytes / sizeof(double));
    Strip strip(rank, ranks, columns, lines);
    const Inner inner{how, inner_us(strip)};
    const double warm_us = run(strip, inner, 5, budget_ms).iteration.median();
    const Profile profile = run(strip, inner, samples_for(budget_ms, warm_us, 10, most), budget_ms);
    strip.check();
    const Samples processor = sum_at_rank0(profile.processor_us);
    if (rank != 0) continue;
    row("halo", "-", bytes, 0, "iteration", "us", profile.iteration);
    row("halo", "-", bytes, 0, "computation", "us", profile.computation);
    row("halo", "-", bytes, 0, "post", "us", profile.post);
    row("halo", "-", bytes, 0, "waitall", "us", profile.waitall);
    row("halo", "-", bytes, 0, "processor", "us", processor);
  }
  MPI_Finalize();
}
