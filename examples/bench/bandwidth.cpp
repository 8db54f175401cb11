// Question: what bandwidth does one sender reach with several messages under way (64 KiB to 4 MiB,
// window of 16)?
//
// Expected (before the first run): 5 to 10 GB/s over vader, ratio speculative / ob1 at least 1.00;
// 0.11 to 0.12 GB/s at 1 Gbit/s.
//
// A sample is one window: MPI_Isend for each message, MPI_Waitall and one short answer from the
// receiver. With --blocking 1 it is a stream of MPI_Send and MPI_Recv instead.
// SPDX-License-Identifier: BSD-3-Clause
#include "window.hpp"

using namespace bench;

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "64k..4m");
  const int count = static_cast<int>(options.number("window", 16));
  const double budget_ms = options.number("budget-ms", 200);
  const long most = static_cast<long>(options.number("samples", 1000));
  const auto calls = options.number("blocking", 0) != 0 ? Calls::blocking : Calls::nonblocking;
  options.end();

  for (const std::size_t bytes : sizes) {
    const Samples us = measure_window(rank, bytes, count, budget_ms, most, calls);
    Samples bandwidth;
    for (const double t : us.values) bandwidth.add(static_cast<double>(bytes) * count / t);
    if (rank == 0)
      row("bandwidth", calls == Calls::blocking ? "stream" : "-", bytes, count, "bandwidth", "MB/s",
          bandwidth);
  }
  MPI_Finalize();
}
