// Question: what do one-sided operations cost whose target is ready (lock_all, operation, flush)?
//
// Expected (before the first run): on allocated memory 20 ns more than Open MPI's components at
// 8 B, the same from 4 KiB on; on created memory less at 8 B and the same from 64 KiB on, where
// both use the kernel's copy.
//
// A sample is one batch of calls on rank 1 by rank 0, divided by their number; rank 1 waits in a
// barrier. The bytes of the last put and get are checked.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

constexpr int target = 1;
const char* name = "onesided_allocated";

struct Memory {
  MPI_Win win = MPI_WIN_NULL;
  unsigned char* data = nullptr;
};

Memory make_window(bool allocated, Buffer& own, std::size_t bytes) {
  Memory memory;
  const auto size = static_cast<MPI_Aint>(bytes);
  if (allocated) {
    MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory.data, &memory.win);
  } else {
    memory.data = own.data();
    MPI_Win_create(memory.data, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory.win);
  }
  std::memset(memory.data, 0, bytes);  // each page is there before it is measured
  MPI_Barrier(MPI_COMM_WORLD);
  return memory;
}

/// Time batches of a call at rank 0 while rank 1 is in a barrier.
template <class Call>
void measure(int rank, const char* which, std::size_t bytes, double budget_ms, Call&& call) {
  const int calls = bytes >= 65536 ? 20 : 500;
  Samples us;
  if (rank == 0) {
    const double end_us = now_us() + 1e3 * budget_ms;
    for (int i = 0; i < calls; ++i) call();
    do {
      const double begin_us = now_us();
      for (int i = 0; i < calls; ++i) call();
      us.add((now_us() - begin_us) / calls);
    } while (now_us() < end_us);
    row(name, which, bytes, calls, "time", "us", us);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

void measure_transfers(int rank, Memory& memory, Buffer& buffer, std::size_t bytes,
                       double budget_ms) {
  const int count = static_cast<int>(bytes);
  buffer.fill(bytes, bytes + 1);
  measure(rank, "put", bytes, budget_ms, [&] {
    MPI_Put(buffer.data(), count, MPI_BYTE, target, 0, count, MPI_BYTE, memory.win);
    MPI_Win_flush(target, memory.win);
  });
  if (rank == 0) std::memset(buffer.data(), 0, bytes);
  measure(rank, "get", bytes, budget_ms, [&] {
    MPI_Get(buffer.data(), count, MPI_BYTE, target, 0, count, MPI_BYTE, memory.win);
    MPI_Win_flush(target, memory.win);
  });
  if (rank == 0) buffer.check(bytes, bytes + 1, "what was put and got");
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "8,4k,64k,1m");
  const bool allocated = options.text("memory", "allocated") == "allocated";
  if (!allocated) name = "onesided_created";
  const double budget_ms = options.number("budget-ms", 100);
  options.end();

  const std::size_t most = *std::max_element(sizes.begin(), sizes.end());
  Buffer own(most), buffer(most);
  Memory memory = make_window(allocated, own, most);
  if (rank == 0) MPI_Win_lock_all(0, memory.win);
  for (const std::size_t bytes : sizes) measure_transfers(rank, memory, buffer, bytes, budget_ms);
  long one = 1, old = 0;
  measure(rank, "fetch_and_op", sizeof one, budget_ms, [&] {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, target, 0, MPI_SUM, memory.win);
    MPI_Win_flush(target, memory.win);
  });
  if (rank == 0) MPI_Win_unlock_all(memory.win);
  measure(rank, "lock", 0, budget_ms, [&] {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, memory.win);
    MPI_Win_unlock(target, memory.win);
  });
  MPI_Win_free(&memory.win);
  MPI_Finalize();
}
