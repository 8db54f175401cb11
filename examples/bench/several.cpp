// Question: how long does an exchange of several messages at a time take (a halo whose neighbours
// are one process, IMB's Exchange, osu_bibw)?
//
// Both ranks post K receives and K sends and wait for all. Through shared memory messages up to the
// eager limit are pushed or read by the kernel, whichever has been faster; which one that is
// depends on whether the data has been written since the last exchange, so both cases are measured.
//
// Expected (before the first run), 4 to 32 KiB over vader: at most 1.05 of ob1's time for data that
// nobody writes, and less than ob1's for data that is written each time.
//
// x is K. A sample is the time of one exchange, as the mean of twenty, the writing included. Every
// byte is checked in a pass that is not timed.
// SPDX-License-Identifier: BSD-3-Clause
#include <memory>

#include "bench.hpp"

using namespace bench;

namespace {

struct Exchange {
  int rank;
  std::size_t bytes;
  std::vector<std::unique_ptr<Buffer>> out, in;
  std::vector<MPI_Request> requests;

  Exchange(int me, std::size_t size, std::size_t messages)
      : rank(me), bytes(size), requests(2 * messages) {
    for (std::size_t i = 0; i < messages; ++i) {
      out.push_back(std::make_unique<Buffer>(size));
      in.push_back(std::make_unique<Buffer>(size));
    }
  }
  void run() {
    const int peer = 1 - rank, length = static_cast<int>(bytes);
    MPI_Request* request = requests.data();
    int tag = 0;
    for (auto& each : in)
      MPI_Irecv(each->data(), length, MPI_BYTE, peer, tag++, MPI_COMM_WORLD, request++);
    tag = 0;
    for (auto& each : out)
      MPI_Isend(each->data(), length, MPI_BYTE, peer, tag++, MPI_COMM_WORLD, request++);
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  }
  void write(int value) {
    for (auto& each : out) std::memset(each->data(), value, bytes);
  }
  void check() {
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i]->fill(bytes, 2 * i + static_cast<std::size_t>(rank));
    run();
    for (std::size_t i = 0; i < in.size(); ++i)
      in[i]->check(bytes, 2 * i + static_cast<std::size_t>(1 - rank), "several");
  }
};

constexpr int batch = 20;

/// @returns  microseconds of one exchange
double sample(Exchange& exchange, bool writes) {
  const double begin = now_us();
  for (int i = 0; i < batch; ++i) {
    if (writes) exchange.write(i);
    exchange.run();
  }
  return (now_us() - begin) / batch;
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "4k,8k,16k,32000");
  const auto messages = options.sizes("messages", "2,4,16");
  const double budget_ms = options.number("budget-ms", 200);
  options.end();

  for (const std::size_t bytes : sizes) {
    for (const std::size_t several : messages) {
      for (const bool writes : {false, true}) {
        Exchange exchange(rank, bytes, several);
        exchange.check();
        Samples warm;  // long enough for the ways to be told apart
        for (int i = 0; i < 40; ++i) warm.add(sample(exchange, writes));
        const long n = samples_for(budget_ms, warm.median() * batch, 10, 2000);
        MPI_Barrier(MPI_COMM_WORLD);
        Samples times;
        for (Pace pace(n, budget_ms); pace.next();) times.add(sample(exchange, writes));
        exchange.check();
        if (rank == 0)
          row("several", writes ? "written" : "unwritten", bytes, static_cast<double>(several),
              "time", "us", times);
      }
    }
  }
  MPI_Finalize();
}
