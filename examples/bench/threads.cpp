// Question: how long does one message take while several threads of each rank are in blocking
// calls?
//
// together: each thread plays ping-pong with its partner on a communicator of their own.
// beside:   one thread plays it while another one of each rank is in a long MPI_Recv.
//
// Expected (before the first run): with as many threads as cores, 8 B as long as with one thread
// and a switch of threads, some 10 us; with stock Open MPI, whose waiting threads wake each other,
// slices of the scheduler, milliseconds.
//
// A sample is a share of the budget, divided by the messages that a thread has sent and received in
// it, on average: stock Open MPI may turn from one microsecond to milliseconds in between, so a
// number of round trips would tell nothing of the time that they take. Every byte is checked in a
// pass that is not timed.
// SPDX-License-Identifier: BSD-3-Clause
#include <atomic>
#include <thread>

#include "bench.hpp"

using namespace bench;

namespace {

constexpr int most_threads = 16;
constexpr int tag = 1, last_tag = 2;

/// One communicator for each pair of threads.
class Pairs {
 public:
  Pairs() {
    for (MPI_Comm& comm : comms_) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
  }
  ~Pairs() {
    for (MPI_Comm& comm : comms_) MPI_Comm_free(&comm);
  }
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;
  [[nodiscard]] MPI_Comm operator[](int i) const { return comms_[static_cast<std::size_t>(i)]; }

 private:
  std::vector<MPI_Comm> comms_ = std::vector<MPI_Comm>(most_threads);
};

/// A thread's round trips with its partner. Rank 0 decides which is the last.
class Play {
 public:
  Play(int rank, MPI_Comm comm, std::size_t bytes)
      : rank_(rank), comm_(comm), bytes_(bytes), out_(bytes), in_(bytes) {}

  /// @returns  round trips
  long until(double end_us) {
    long trips = 0;
    for (bool last = false; !last; ++trips) {
      if (rank_ == 0) *out_.data() = last = now_us() >= end_us;
      round_trip();
      if (rank_ == 1) last = *in_.data() != 0;
    }
    return trips;
  }
  void check() {
    for (std::uint64_t i = 0; i < 20; i += 2) {
      out_.fill(bytes_, i + static_cast<std::uint64_t>(rank_));
      round_trip();
      in_.check(bytes_, i + static_cast<std::uint64_t>(1 - rank_), "threads");
    }
  }

 private:
  void round_trip() {
    const int count = static_cast<int>(bytes_);
    if (rank_ == 0) MPI_Send(out_.data(), count, MPI_BYTE, 1, tag, comm_);
    MPI_Recv(in_.data(), count, MPI_BYTE, 1 - rank_, tag, comm_, MPI_STATUS_IGNORE);
    if (rank_ == 1) MPI_Send(out_.data(), count, MPI_BYTE, 0, tag, comm_);
  }

  int rank_;
  MPI_Comm comm_;
  std::size_t bytes_;
  Buffer out_, in_;
};

/// Have `threads` threads, this one among them, do the same. @param act  called with their numbers
template <class Act>
void on_threads(int threads, Act act) {
  MPI_Barrier(MPI_COMM_WORLD);
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i) others.emplace_back(act, i);
  act(0);
  for (std::thread& each : others) each.join();
}

/// A thread that is in MPI_Recv until the end of the scope.
class LongReceive {
 public:
  LongReceive(int rank, const Pairs& pairs) : rank_(rank), comm_(pairs[most_threads - 1]) {
    thread_ = std::thread(
        [this] { MPI_Recv(nullptr, 0, MPI_BYTE, 1 - rank_, last_tag, comm_, MPI_STATUS_IGNORE); });
  }
  ~LongReceive() {
    MPI_Send(nullptr, 0, MPI_BYTE, 1 - rank_, last_tag, comm_);
    thread_.join();
  }
  LongReceive(const LongReceive&) = delete;
  LongReceive& operator=(const LongReceive&) = delete;

 private:
  int rank_;
  MPI_Comm comm_;
  std::thread thread_;
};

struct Plan {
  double budget_ms;
  long samples;
};

void measure(int rank, const Pairs& pairs, const char* which, int threads, std::size_t bytes,
             const Plan& plan) {
  on_threads(threads, [&](int i) { Play(rank, pairs[i], bytes).check(); });
  Samples times;
  for (long sample = 0; sample < plan.samples; ++sample) {
    std::atomic<long> trips{0};
    double begin_us = 0;
    on_threads(threads, [&](int i) {
      if (i == 0) begin_us = now_us();
      const double end_us = now_us() + 1e3 * plan.budget_ms / static_cast<double>(plan.samples);
      trips += Play(rank, pairs[i], bytes).until(end_us);
    });
    times.add((now_us() - begin_us) * threads / 2.0 / static_cast<double>(trips));
  }
  if (rank == 0) row("threads", which, bytes, threads, "half_round_trip", "us", times);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2, MPI_THREAD_MULTIPLE);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,64k");
  const auto threads = options.sizes("threads", "1,2,4");
  const double budget_ms = options.number("budget-ms", 400);
  const long samples = static_cast<long>(options.number("samples", 7));
  options.end();
  for (const std::size_t each : sizes) {
    if (each < 1) Options::fail("--sizes are at least 1", "0");
  }
  for (const std::size_t each : threads) {
    if (each < 1 || each >= most_threads)
      Options::fail("--threads are 1 to 15", std::to_string(each).c_str());
  }
  {
    const Pairs pairs;
    const Plan plan{budget_ms, samples};
    for (const std::size_t bytes : sizes) {
      for (const std::size_t each : threads)
        measure(rank, pairs, "together", static_cast<int>(each), bytes, plan);
      const LongReceive beside(rank, pairs);
      measure(rank, pairs, "beside", 1, bytes, plan);
    }
  }
  MPI_Finalize();
}
