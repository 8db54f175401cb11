// Question: how much of a transfer disappears behind computation, and does the transfer go on
// without a call into MPI?
//
// Four cases: the sender or the receiver comes first, and the side that computes (and is measured)
// is the sender or the receiver.
//
// Expected (before the first run), 256 KiB to 4 MiB:
//   receiver_early.receiver                 ob1 about 0 %, speculative at least 90 % (two TCP nodes
//                                           at 1 Gbit/s, to 1 MiB: at least 80 %)
//   receiver_early.sender, sender_early.*   speculative not below ob1
//
// Definition. The measured side does
//     begin; MPI_Isend or MPI_Irecv; [computation of length C without MPI calls]; MPI_Wait; end
//   exposed(C) = time inside MPI_Isend/MPI_Irecv + time inside MPI_Wait; the other side always goes
//                straight to MPI_Wait
//   transfer   = median of the receiver's exposed(0) with the same side first: nothing is hidden,
//                all of the message is waited for
//   overlap    = 1 - exposed(C) / transfer, with C = 1.5 x transfer + slack: long enough for all of
//                it to be hidden
// The transfer is taken at the receiver for the sender too: a sender may be done as soon as a
// socket has taken its data, or not, by chance. So the overlap is the share of the transfer that
// costs the measured side nothing. Nothing is subtracted as unavoidable: the call that starts the
// message and the copy out of a socket count as exposed. 100 % means that the message cost nothing,
// 0 % that the computation hid nothing; a negative value that it did harm. Iterations with and
// without computation alternate, so that both see the same machine.
//
// Processor is the processor time of both ranks and all their threads for one message with its
// computation, from barrier to barrier, as a mean: what the overlap is paid for with.
//
// Who comes first is forced, with short messages on another communicator that are not under test:
//   measured side early   it starts its message, then releases the other side by a short message,
//                         then computes
//   measured side late    after a barrier it lets `lead-us` pass without MPI calls while the other
//                         side starts, then begins
//
// --compute spin computes on the rank's own core. With --compute sleep the computation, and the
// lead, sleeps instead: it stands for a computation on another core, so that whatever makes
// progress has a core to spare.
//
// Progress (--progress 1): time from begin to end against C in steps of a quarter of the transfer;
// a transfer that goes on by itself gives max(C, transfer), one that needs MPI calls gives C +
// transfer.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

constexpr int sender = 0, receiver = 1;
struct Case {
  const char* name;
  int early, measured;
};
constexpr Case cases[] = {{"receiver_early.receiver", receiver, receiver},
                          {"receiver_early.sender", receiver, sender},
                          {"sender_early.receiver", sender, receiver},
                          {"sender_early.sender", sender, sender}};

struct Run {
  int rank;
  MPI_Comm
      control;  // releases and barriers, so that they never share an envelope with what is measured
  Buffer* buffer;
  std::size_t bytes;
  int tag;
  double lead_us;
  Compute how;
};
struct Times {
  double exposed_us, total_us;
};

void start_message(const Run& run, MPI_Request* request) {
  const int n = static_cast<int>(run.bytes);
  if (run.rank == sender)
    MPI_Isend(run.buffer->data(), n, MPI_BYTE, receiver, run.tag, MPI_COMM_WORLD, request);
  else
    MPI_Irecv(run.buffer->data(), n, MPI_BYTE, sender, run.tag, MPI_COMM_WORLD, request);
}

/// One message in one case; only the measured side computes.
///
/// @param compute  length of the computation in microseconds, used on the measured side
Times once(const Case& which, const Run& run, double compute) {
  const bool measured = run.rank == which.measured, early = run.rank == which.early;
  const bool released =
      which.early == which.measured;  // the late side waits for a short message, else for its clock
  const int peer = 1 - run.rank;
  MPI_Barrier(run.control);
  if (!early) {
    if (released)
      MPI_Recv(nullptr, 0, MPI_BYTE, peer, 0, run.control, MPI_STATUS_IGNORE);
    else
      compute_us(run.lead_us, run.how);
  }
  MPI_Request request;
  const double begin = now_us();
  start_message(run, &request);
  const double started = now_us();
  if (early && released) MPI_Send(nullptr, 0, MPI_BYTE, peer, 0, run.control);
  if (measured) compute_us(compute, run.how);
  const double wait = now_us();
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  const double end = now_us();
  return {(started - begin) + (end - wait), end - begin};
}

void check_pass(const Case& which, const Run& run, double compute) {
  for (std::uint64_t i = 0; i < 2; ++i) {
    if (run.rank == sender) run.buffer->fill(run.bytes, i + 7);
    once(which, run, compute);
    if (run.rank == receiver) run.buffer->check(run.bytes, i + 7, which.name);
  }
}

double stamped(const Case& which, const Run& run, double compute, Times* times) {
  static std::uint64_t stamp = 0;
  if (run.rank == sender) run.buffer->stamp(run.bytes, ++stamp);
  *times = once(which, run, compute);
  return times->exposed_us;
}

/// Median of the receiver's samples, known to both sides.
double median_of(const Samples& s, const Run& run) {
  double median = s.median();
  MPI_Bcast(&median, 1, MPI_DOUBLE, receiver, run.control);
  return median;
}

/// The case in which the transfer is measured: the same side first, at the receiver.
Case reference(const Case& which) { return {which.name, which.early, receiver}; }

/// Median of the receiver's exposed(0), known to both sides afterwards.
double transfer_us(const Case& which, const Run& run, int samples) {
  Samples s;
  Times t;
  for (int i = 0; i < samples; ++i) s.add(stamped(reference(which), run, 0, &t));
  return median_of(s, run);
}

void measure_overlap(const Case& which, const Run& run, double budget_ms, long most) {
  const double first = transfer_us(which, run, 8);
  const double compute = 1.5 * first + 20;
  check_pass(which, run, compute);
  const double pair_us = 2 * first + compute + 2 * run.lead_us + 50;
  const long n = samples_for(budget_ms, pair_us, 10, most);
  Samples transfer, exposed, overlap, peer;
  Times t;
  double used_us = 0;
  for (Pace pace(n, budget_ms); pace.next();) {
    transfer.add(stamped(reference(which), run, 0, &t));
    const double before_us = processor_us();
    exposed.add(stamped(which, run, compute, &t));
    used_us += processor_us() - before_us;
    peer.add(t.total_us);
  }
  const Samples processor = sum_at_rank0(used_us / static_cast<double>(peer.values.size()));
  const double whole = median_of(transfer, run);
  for (const double e : exposed.values) overlap.add(100.0 * (1.0 - e / whole));
  to_rank0(transfer, receiver, run.rank);
  to_rank0(exposed, which.measured, run.rank);
  to_rank0(overlap, which.measured, run.rank);
  to_rank0(peer, 1 - which.measured, run.rank);
  if (run.rank != 0) return;
  row("overlap", which.name, run.bytes, 0, "overlap", "%", overlap);
  row("overlap", which.name, run.bytes, 0, "transfer", "us", transfer);
  row("overlap", which.name, run.bytes, 0, "exposed", "us", exposed);
  row("overlap", which.name, run.bytes, 0, "other_side", "us", peer);
  row("overlap", which.name, run.bytes, 0, "processor", "us", processor);
}

void measure_progress(const Case& which, const Run& run, double budget_ms, long most) {
  const double first = transfer_us(which, run, 12);
  for (int quarter = 0; quarter <= 12; ++quarter) {
    const double compute = first * quarter / 4.0;
    const long n = samples_for(budget_ms, first + compute + run.lead_us + 50, 8, most);
    Samples total;
    Times t;
    for (Pace pace(n, budget_ms); pace.next();) {
      stamped(which, run, compute, &t);
      total.add(t.total_us);
    }
    to_rank0(total, which.measured, run.rank);
    if (run.rank == 0) row("progress", which.name, run.bytes, compute, "time", "us", total);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "4k..4m");
  const std::string wanted = options.text("case", "all");
  const double lead_us = options.number("lead-us", 100);
  const double budget_ms = options.number("budget-ms", 100);
  const long most = static_cast<long>(options.number("samples", 300));
  const bool progress = options.number("progress", 0) != 0;
  const Compute how = options.compute();
  options.end();
  print_compute(how, rank);

  MPI_Comm control;
  MPI_Comm_dup(MPI_COMM_WORLD, &control);
  int tag = 1;
  for (const Case& which : cases) {
    if (wanted != "all" && wanted != which.name) continue;
    for (const std::size_t bytes : sizes) {
      Buffer buffer(bytes);
      const Run run{rank, control, &buffer, bytes, tag++, lead_us, how};
      progress ? measure_progress(which, run, budget_ms, most)
               : measure_overlap(which, run, budget_ms, most);
    }
  }
  MPI_Comm_free(&control);
  MPI_Finalize();
}
