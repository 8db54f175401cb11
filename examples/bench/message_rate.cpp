// Question: how many short messages a second does one sender get through (8 B, window of 64)?
//
// Expected (before the first run): 5 to 10 million a second over vader; ratio speculative / ob1 at
// least 1.00.
//
// A sample is one window: 64 MPI_Isend, MPI_Waitall and one short answer from the receiver.
// SPDX-License-Identifier: BSD-3-Clause
#include "window.hpp"

using namespace bench;

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8");
  const int count = static_cast<int>(options.number("window", 64));
  const double budget_ms = options.number("budget-ms", 300);
  const long most = static_cast<long>(options.number("samples", 20000));
  options.end();

  for (const std::size_t bytes : sizes) {
    const Samples us = measure_window(rank, bytes, count, budget_ms, most);
    Samples rate;
    for (const double t : us.values) rate.add(count / t);
    if (rank == 0) row("message_rate", "-", bytes, count, "rate", "Mmsg/s", rate);
  }
  MPI_Finalize();
}
