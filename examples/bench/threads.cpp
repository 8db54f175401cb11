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
// A sample is the time of all round trips of all threads, per message of one of them. Before it,
// every byte is checked in a pass that is not timed.
// SPDX-License-Identifier: BSD-3-Clause
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

/// A thread's round trips with its partner. @param checked  every byte of every message
void play(int rank, MPI_Comm comm, std::size_t bytes, long trips, bool checked) {
  Buffer out(bytes), in(bytes);
  const int count = static_cast<int>(bytes);
  for (long i = 0; i < trips; ++i) {
    const auto seed = 2 * static_cast<std::uint64_t>(i);
    if (checked) out.fill(bytes, seed + static_cast<std::uint64_t>(rank));
    if (rank == 0) MPI_Send(out.data(), count, MPI_BYTE, 1, tag, comm);
    MPI_Recv(in.data(), count, MPI_BYTE, 1 - rank, tag, comm, MPI_STATUS_IGNORE);
    if (rank == 1) MPI_Send(out.data(), count, MPI_BYTE, 0, tag, comm);
    if (checked) in.check(bytes, seed + static_cast<std::uint64_t>(1 - rank), "threads");
  }
}

/// All threads at once. @returns  microseconds for one message of one of them
double together(int rank, const Pairs& pairs, int threads, std::size_t bytes, long trips,
                bool checked = false) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = now_us();
  std::vector<std::thread> others;
  for (int i = 1; i < threads; ++i)
    others.emplace_back([&, i] { play(rank, pairs[i], bytes, trips, checked); });
  play(rank, pairs[0], bytes, trips, checked);
  for (std::thread& each : others) each.join();
  return (now_us() - begin) / 2.0 / static_cast<double>(trips);
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
  together(rank, pairs, threads, bytes, 10, true);
  const double first_us = together(rank, pairs, threads, bytes, 20);
  const long trips =
      samples_for(plan.budget_ms / static_cast<double>(plan.samples), 2 * first_us, 5, 100'000);
  Samples times;
  for (Pace pace(plan.samples, plan.budget_ms); pace.next();)
    times.add(together(rank, pairs, threads, bytes, trips));
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
  for (const std::size_t each : threads) {
    if (each < 1 || each >= most_threads)
      Options::fail("--threads are 1 to 15", std::to_string(each).c_str());
  }
  {
    const Pairs pairs;
    for (const std::size_t bytes : sizes) {
      const Plan plan{budget_ms, samples};
      for (const std::size_t each : threads)
        measure(rank, pairs, "together", static_cast<int>(each), bytes, plan);
      const LongReceive beside(rank, pairs);
      measure(rank, pairs, "beside", 1, bytes, plan);
    }
  }
  MPI_Finalize();
}
