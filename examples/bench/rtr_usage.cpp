// Question: how many of the RTRs are used, and how many bytes does the speculation add to those of
// the data?
//
// Expected (before the first run): receiver early, all RTRs used; crossing and mixed, few used and
// few sent once adaptation has seen it; extra bytes below 0.04 % of the data in every pattern.
//
// The patterns (messages of 64 KiB to 1 MiB unless said otherwise):
//   receiver_early   the receive is posted first
//   sender_early     the send is started first
//   exchange         both sides post a receive, then send (model 1 without computation)
//   any_source       the receive does not name its sender: no RTR may go out
//   mixed            one envelope; two of three messages are short although the buffer is large:
//   the receiver predicts wrongly
// What is counted comes from pml/speculative's performance variables (MPI_T), summed over both
// ranks; another PML has none, and the program says so. Extra bytes are what the component itself
// calls so: unused RTRs and all ACKs.
// SPDX-License-Identifier: BSD-3-Clause
#include "counters.hpp"

using namespace bench;

namespace {

constexpr std::size_t largest = std::size_t{1} << 20;

struct Run {
  int rank;
  MPI_Comm control;
  Buffer *out, *in;
};

double total_bytes = 0;

void send_one(const Run& run, std::size_t bytes, int tag, long i, MPI_Request* request) {
  run.out->stamp(bytes, static_cast<std::uint64_t>(i));
  MPI_Isend(run.out->data(), static_cast<int>(bytes), MPI_BYTE, 1 - run.rank, tag, MPI_COMM_WORLD,
            request);
  total_bytes += static_cast<double>(bytes);
}
void receive_one(const Run& run, int source, int tag, MPI_Request* request) {
  MPI_Irecv(run.in->data(), static_cast<int>(largest), MPI_BYTE, source, tag, MPI_COMM_WORLD,
            request);
}

/// One message from rank 0 to rank 1; early is the rank that starts first.
void one_way(const Run& run, std::size_t bytes, int tag, long i, int early, int source) {
  MPI_Request request;
  MPI_Barrier(run.control);
  if (run.rank != early) compute_us(60);
  if (run.rank == 0)
    send_one(run, bytes, tag, i, &request);
  else
    receive_one(run, source, tag, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void both_ways(const Run& run, std::size_t bytes, int tag, long i) {
  MPI_Request requests[2];
  receive_one(run, 1 - run.rank, tag, &requests[0]);
  send_one(run, bytes, tag, i, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const long count = static_cast<long>(options.number("messages", 300));
  options.end();

  Buffer out(largest), in(largest);
  Run run{rank, MPI_COMM_NULL, &out, &in};
  MPI_Comm_dup(MPI_COMM_WORLD, &run.control);
  Counters counters;
  if (counters.empty() && rank == 0)
    std::printf("no performance variables pml_speculative_*: this is another PML\n");
  const char* names[] = {"receiver_early", "sender_early", "exchange", "any_source", "mixed"};
  for (int pattern = 0; pattern < 5; ++pattern) {
    const int tag = 10 + pattern;
    auto before = counters.sum();
    total_bytes = 0;
    for (long i = 0; i < count; ++i) {
      const std::size_t bytes = std::size_t{65536} << (i % 5);
      switch (pattern) {
        case 0: one_way(run, bytes, tag, i, 1, 0); break;
        case 1: one_way(run, bytes, tag, i, 0, 0); break;
        case 2: both_ways(run, bytes, tag, i); break;
        case 3: one_way(run, bytes, tag, i, 1, MPI_ANY_SOURCE); break;
        case 4: one_way(run, i % 3 == 0 ? bytes : 64, tag, i, 1, 0); break;
      }
    }
    MPI_Barrier(run.control);
    auto after = counters.sum();
    double bytes = 0;
    MPI_Allreduce(&total_bytes, &bytes, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank != 0 || counters.empty()) continue;
    for (auto& entry : after) {
      Samples s;
      s.add(entry.second - before[entry.first]);
      row("rtr_usage", names[pattern], 0, 0, entry.first.c_str(), "-", s);
    }
    Samples extra, used;
    extra.add(100.0 * (after["extra_control_bytes"] - before["extra_control_bytes"]) / bytes);
    row("rtr_usage", names[pattern], 0, 0, "extra_bytes", "% of data", extra);
    const double sent = after["rtr_sent"] - before["rtr_sent"];
    used.add(sent > 0 ? 100.0 * (after["rtr_used"] - before["rtr_used"]) / sent : 0);
    row("rtr_usage", names[pattern], 0, 0, "rtr_usage", "% of sent", used);
  }
  counters.end();
  MPI_Comm_free(&run.control);
  MPI_Finalize();
}
