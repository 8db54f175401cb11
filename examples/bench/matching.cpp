// Question: does the time to match one message depend on how many others wait, each with its own
// tag?
//
// Expected (before the first run): flat from 100 to 10,000 with speculative; growing in proportion
// with ob1.
//
// unexpected   all messages have arrived before the receiver asks for them, in another order
// (fixed, shuffled) posted       all receives are posted before the sender sends, in another order
// A sample is the time on the receiver for all messages of one round, divided by their number. Each
// message carries its tag and its round, and both are checked after the time has been taken.
// SPDX-License-Identifier: BSD-3-Clause
#include <numeric>
#include <random>

#include "bench.hpp"

using namespace bench;

namespace {

struct Message {
  int tag, round;
};

struct Run {
  int rank;
  MPI_Comm control;
  std::vector<int> order;  // the other side's order of tags
  std::vector<Message> data;
  std::vector<MPI_Request> requests;
};

void check(const Run& run, int round) {
  for (std::size_t i = 0; i < run.data.size(); ++i)
    if (run.data[i].tag != static_cast<int>(i) || run.data[i].round != round) {
      std::fprintf(stderr, "bench: matching: tag %zu of round %d holds tag %d of round %d\n", i,
                   round, run.data[i].tag, run.data[i].round);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

void send_all(Run& run, const std::vector<int>& tags, int round) {
  for (const int tag : tags) {
    run.data[static_cast<std::size_t>(tag)] = {tag, round};
    MPI_Send(&run.data[static_cast<std::size_t>(tag)], 2, MPI_INT, 1, tag, MPI_COMM_WORLD);
  }
}

/// @returns  microseconds on rank 1 for all receives; the barrier has brought all messages in
/// before
double unexpected(Run& run, const std::vector<int>& tags, int round) {
  if (run.rank == 0) send_all(run, tags, round);
  MPI_Barrier(run.control);
  const double begin = now_us();
  if (run.rank == 1)
    for (const int tag : run.order)
      MPI_Recv(&run.data[static_cast<std::size_t>(tag)], 2, MPI_INT, 0, tag, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  return now_us() - begin;
}

/// @returns  microseconds on rank 1 from the word that the receives are posted to the end of the
/// last one
double posted(Run& run, const std::vector<int>& tags, int round) {
  if (run.rank == 1)
    for (std::size_t i = 0; i < tags.size(); ++i)
      MPI_Irecv(&run.data[i], 2, MPI_INT, 0, static_cast<int>(i), MPI_COMM_WORLD, &run.requests[i]);
  MPI_Barrier(run.control);
  const double begin = now_us();
  if (run.rank == 0) {
    MPI_Recv(nullptr, 0, MPI_BYTE, 1, 0, run.control, MPI_STATUS_IGNORE);
    send_all(run, run.order, round);
  } else {
    MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, run.control);
    MPI_Waitall(static_cast<int>(run.requests.size()), run.requests.data(), MPI_STATUSES_IGNORE);
  }
  return now_us() - begin;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto counts = options.sizes("counts", "100,1000,10000");
  const double budget_ms = options.number("budget-ms", 300);
  const long most = static_cast<long>(options.number("samples", 200));
  options.end();

  Run run{rank, MPI_COMM_NULL, {}, {}, {}};
  MPI_Comm_dup(MPI_COMM_WORLD, &run.control);
  int round = 0;
  for (const std::size_t count : counts) {
    std::vector<int> tags(count);
    std::iota(tags.begin(), tags.end(), 0);
    run.order = tags;
    std::shuffle(run.order.begin(), run.order.end(), std::mt19937(7));
    run.data.assign(count, {});
    run.requests.assign(count, MPI_REQUEST_NULL);
    for (const bool early : {false, true}) {
      auto once = [&] {
        const double us = early ? posted(run, tags, ++round) : unexpected(run, tags, ++round);
        if (rank == 1) check(run, round);
        MPI_Barrier(run.control);
        return us;
      };
      once();
      double longest = once();
      MPI_Bcast(&longest, 1, MPI_DOUBLE, 1, run.control);
      const long n = samples_for(budget_ms, longest * 2, 3, most);
      Samples each;
      for (Pace pace(n, budget_ms); pace.next();) each.add(once() / static_cast<double>(count));
      to_rank0(each, 1, rank);
      if (rank == 0)
        row("matching", early ? "posted" : "unexpected", 8, static_cast<double>(count),
            "per_message", "us", each);
    }
  }
  MPI_Comm_free(&run.control);
  MPI_Finalize();
}
