// Question: what does an exclusive lock cost that several ranks want, and does each get its share?
//
// Expected (before the first run): tickets are served in turn, so the shares of osc/newrma differ
// by one at most per round (1.0 : 1), at the price of a change of rank for each lock: where there
// are more ranks than cores the system's scheduler sets the rate. Components that try again and
// again pass the lock to who has just had it: a higher rate, and shares that differ much.
//
// All ranks lock rank 0, add one to a word (get, put: the lock makes it exact) and unlock, for
// `budget-ms`. Rate: of all ranks together; fairness: largest share : smallest share.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

using namespace bench;

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options(argc, argv);
  const bool allocated = options.text("memory", "allocated") == "allocated";
  const double budget_ms = options.number("budget-ms", 300);
  const int repeats = static_cast<int>(options.number("repeats", 3));
  options.end();
  {
    RmaWindow window(allocated, 64);
    long all = 0;
    Samples rate, fairness;
    for (int i = 0; i < repeats; ++i) {
      long own = 0;
      MPI_Barrier(MPI_COMM_WORLD);
      const double begin_us = now_us(), end_us = begin_us + 1e3 * budget_ms;
      while (now_us() < end_us) {
        long value = 0;
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window.win);
        MPI_Get(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
        MPI_Win_flush(0, window.win);
        ++value;
        MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, window.win);
        MPI_Win_unlock(0, window.win);
        ++own;
      }
      const double took_us = now_us() - begin_us;
      long sum = 0, least = 0, most = 0;
      double longest_us = 0;
      MPI_Reduce(&own, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
      MPI_Reduce(&own, &least, 1, MPI_LONG, MPI_MIN, 0, MPI_COMM_WORLD);
      MPI_Reduce(&own, &most, 1, MPI_LONG, MPI_MAX, 0, MPI_COMM_WORLD);
      MPI_Reduce(&took_us, &longest_us, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
      all += sum;
      rate.add(1e3 * static_cast<double>(sum) / longest_us);
      fairness.add(static_cast<double>(most) / static_cast<double>(std::max(least, 1L)));
    }
    if (rank == 0) {
      long value = 0;
      MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, window.win);
      std::memcpy(&value, window.data, sizeof value);
      MPI_Win_unlock(0, window.win);
      if (value != all) {
        std::fprintf(stderr, "bench: the locks let %ld of %ld additions through\n", value, all);
        MPI_Abort(MPI_COMM_WORLD, 3);
      }
      row("rma_lock", "exclusive", 8, ranks, "rate", "1000/s", rate);
      row("rma_lock", "exclusive", 8, ranks, "fairness", "largest : smallest", fairness);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  }
  MPI_Finalize();
}
