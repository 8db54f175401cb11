// Question: how much do one-sided operations move when many of them precede one flush?
//
// Expected (before the first run): on allocated memory of one node the copy decides: all components
// are alike from 64 KiB on, and at 8 B the one with the shortest way through its call is first. On
// created memory the kernel's copy decides from 64 KiB on; below it, osc/newrma sends messages and
// is ahead of one system call each.
//
// Bandwidth: batches of puts or gets with a flush at the end; rate: 1000 puts of 8 B, or atomic
// additions, with a flush at the end. One-to-many: one put to every other rank, and a flush_all.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

using namespace bench;

namespace {

int rank = 0, ranks = 1;
const char* name = "rma_rate_allocated";
double budget_ms = 100;

void transfers(RmaWindow& window, Buffer& buffer, std::size_t bytes) {
  const int count = static_cast<int>(bytes);
  const int batch = bytes >= (1 << 20) ? 4 : bytes >= (64 << 10) ? 16 : 100;
  const auto to_rate = [&](Samples us) {
    for (double& each : us.values) each = static_cast<double>(bytes) * batch / each;
    return us;
  };
  buffer.fill(bytes, bytes + 1);
  const Samples put = time_batches(rank, 1, budget_ms, [&] {
    for (int i = 0; i < batch; ++i)
      MPI_Put(buffer.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window.win);
    MPI_Win_flush(1, window.win);
  });
  if (rank == 0) std::memset(buffer.data(), 0, bytes);
  const Samples get = time_batches(rank, 1, budget_ms, [&] {
    for (int i = 0; i < batch; ++i)
      MPI_Get(buffer.data(), count, MPI_BYTE, 1, 0, count, MPI_BYTE, window.win);
    MPI_Win_flush(1, window.win);
  });
  if (rank != 0) return;
  buffer.check(bytes, bytes + 1, "what was put and got");
  row(name, "put", bytes, batch, "bandwidth", "MB/s", to_rate(put));
  row(name, "get", bytes, batch, "bandwidth", "MB/s", to_rate(get));
}

/// Millions of operations a second, with one flush for each 1000.
template <class Call>
void rate(RmaWindow& window, const char* which, Call&& call) {
  constexpr int batch = 1000;
  Samples us = time_batches(rank, 1, budget_ms, [&] {
    for (int i = 0; i < batch; ++i) call();
    MPI_Win_flush(1, window.win);
  });
  for (double& each : us.values) each = batch / each;
  if (rank == 0) row(name, which, 8, batch, "rate", "M/s", us);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8..4m");
  const bool allocated = options.text("memory", "allocated") == "allocated";
  if (!allocated) name = "rma_rate_created";
  budget_ms = options.number("budget-ms", 60);
  options.end();
  if (ranks < 2) MPI_Abort(MPI_COMM_WORLD, 1);

  {
    const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
    Buffer buffer(most);
    RmaWindow window(allocated, most);
    long one = 1, old = 0;
    if (rank == 0) MPI_Win_lock_all(0, window.win);
    for (const std::size_t bytes : sizes) transfers(window, buffer, bytes);
    rate(window, "put", [&] { MPI_Put(&one, 8, MPI_BYTE, 1, 0, 8, MPI_BYTE, window.win); });
    rate(window, "accumulate",
         [&] { MPI_Accumulate(&one, 1, MPI_LONG, 1, 0, 1, MPI_LONG, MPI_SUM, window.win); });
    rate(window, "fetch_and_op",
         [&] { MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window.win); });
    for (const std::size_t bytes : sizes) {
      if (bytes < 8 || ranks < 3) continue;
      const int count = static_cast<int>(bytes);
      const Samples us = time_batches(rank, 1, budget_ms, [&] {
        for (int to = 1; to < ranks; ++to)
          MPI_Put(buffer.data(), count, MPI_BYTE, to, 0, count, MPI_BYTE, window.win);
        MPI_Win_flush_all(window.win);
      });
      if (rank == 0) row(name, "one_to_many", bytes, ranks - 1, "time", "us", us);
    }
    if (rank == 0) MPI_Win_unlock_all(window.win);
    MPI_Barrier(MPI_COMM_WORLD);
    const Samples latency = time_batches(rank, 50, budget_ms, [&] {
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window.win);
      MPI_Fetch_and_op(&one, &old, MPI_LONG, 1, 0, MPI_SUM, window.win);
      MPI_Win_unlock(1, window.win);
    });
    if (rank == 0) row(name, "locked_fetch_and_op", 8, 50, "time", "us", latency);
  }
  MPI_Finalize();
}
