// Question: what does speculation cost where it never helps, a ping-pong in which RTR and RTS
// always cross?
//
// Expected (before the first run), against ob1: below 1 % with adaptation (--mca
// pml_speculative_adaptation 1), below 3 % without it; messages below the eager limit below 1 %.
//
// The receiver begins at an agreed instant and the sender x microseconds later, x about the time of
// one short message: so the RTR and the RTS are both under way before either is seen. Which x meets
// that best depends on the network; several are tried (--skews-ns). The clocks of the two sides are
// compared first (the shortest of many round trips). A sample is the time from the receiver's
// instant to the end of the receive; the direction changes with every message. With pml/speculative
// the RTRs sent and those not used are printed as shares of the messages: they tell whether the
// timing was met (and, with adaptation, whether it has stopped the RTRs).
// SPDX-License-Identifier: BSD-3-Clause
#include "counters.hpp"

using namespace bench;

namespace {

/// Estimate (clock of rank 0) - (clock here) on rank 1; 0 on rank 0.
double clock_offset_us(int rank) {
  double best_trip = 1e12, offset = 0;
  for (int i = 0; i < 500; ++i) {
    double remote = 0;
    if (rank == 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      remote = now_us();
      MPI_Send(&remote, 1, MPI_DOUBLE, 1, 5, MPI_COMM_WORLD);
    } else {
      const double begin = now_us();
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 5, MPI_COMM_WORLD);
      MPI_Recv(&remote, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const double end = now_us();
      if (end - begin < best_trip) best_trip = end - begin, offset = remote - (begin + end) / 2;
    }
  }
  return offset;
}

struct Run {
  int rank;
  double offset_us, lead_us, skew_us;
  MPI_Comm control;
};

/// Send one message from a side at an agreed instant.
///
/// @returns  microseconds from the instant to the end of the call here
double once(const Run& run, Buffer& buffer, std::size_t bytes, int from) {
  double instant = now_us() + run.lead_us;
  MPI_Bcast(&instant, 1, MPI_DOUBLE, 0, run.control);
  instant -= run.offset_us;
  const double mine = run.rank == from ? instant + run.skew_us : instant;
  compute_until_us(mine - 2);
  while (now_us() < mine) {}
  const int n = static_cast<int>(bytes);
  if (run.rank == from)
    MPI_Send(buffer.data(), n, MPI_BYTE, 1 - run.rank, 1, MPI_COMM_WORLD);
  else
    MPI_Recv(buffer.data(), n, MPI_BYTE, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  return now_us() - instant;
}

/// Measure one size with one skew.
void measure(const Run& run, Counters& counters, Buffer& buffer, std::size_t bytes,
             double budget_ms, long most) {
  Samples warm;
  for (int i = 0; i < 20; ++i) warm.add(once(run, buffer, bytes, i % 2));
  const long n = samples_for(budget_ms, warm.median() + run.lead_us + 5, 20, most) / 2 * 2;
  auto before = counters.sum();
  Samples mine, theirs;
  long i = 0;
  for (Pace pace(n, budget_ms); pace.next(); ++i) {
    const int from = static_cast<int>(i % 2);
    if (run.rank == from) buffer.stamp(bytes, static_cast<std::uint64_t>(i));
    const double us = once(run, buffer, bytes, from);
    if (run.rank != from) mine.add(us);
  }
  auto after = counters.sum();
  theirs = mine;
  to_rank0(theirs, 1, run.rank);
  if (run.rank != 0) return;
  for (const double us : theirs.values) mine.add(us);
  row("crossing", "-", bytes, run.skew_us, "latency", "us", mine);
  if (counters.empty()) return;
  Samples sent, unused;
  const double rtrs = after["rtr_sent"] - before["rtr_sent"];
  sent.add(100.0 * rtrs / static_cast<double>(i));
  unused.add(100.0 * (rtrs - after["rtr_used"] + before["rtr_used"]) / static_cast<double>(i));
  row("crossing", "-", bytes, run.skew_us, "rtr_sent", "%", sent);
  row("crossing", "-", bytes, run.skew_us, "rtr_unused", "%", unused);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "1k,64k,128k,256k,1m");
  const double lead_us = options.number("lead-us", 30);
  const auto skews_ns = options.sizes("skews-ns", "0,100,200,400");
  const double budget_ms = options.number("budget-ms", 100);
  const long most = static_cast<long>(options.number("samples", 2000));
  options.end();

  Run run{rank, 0, lead_us, 0, MPI_COMM_NULL};
  MPI_Comm_dup(MPI_COMM_WORLD, &run.control);
  run.offset_us = clock_offset_us(rank);
  Counters counters;
  for (const std::size_t bytes : sizes) {
    Buffer buffer(bytes);
    for (int i = 0; i < 4; ++i) {
      if (rank == i % 2) buffer.fill(bytes, static_cast<std::uint64_t>(i));
      once(run, buffer, bytes, i % 2);
      if (rank != i % 2) buffer.check(bytes, static_cast<std::uint64_t>(i), "crossing");
    }
    for (const std::size_t skew_ns : skews_ns) {
      run.skew_us = 1e-3 * static_cast<double>(skew_ns);
      measure(run, counters, buffer, bytes, budget_ms, most);
    }
  }
  counters.end();
  MPI_Comm_free(&run.control);
  MPI_Finalize();
}
