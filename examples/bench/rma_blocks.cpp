// Question: what does it cost to put, get or accumulate many short blocks, a column of a matrix, in
// a window of another process of the node that the program has allocated?
//
// Expected (before the first run): osc/rdma makes a call of the kernel for each block, 5 us;
// osc/newrma reads near blocks at once and writes a thousand with one call; osc/pt2pt, whose target
// must be in MPI, copies them from messages, and is first.
//
// A sample is one operation of rank 0 with its flush under lock_all; rank 1 waits in a barrier.
// Blocks of 16 bytes, 64 from one to the next. The bytes of the last put and get are checked.
// SPDX-License-Identifier: BSD-3-Clause
#include "rma.hpp"

using namespace bench;

namespace {

constexpr int block_words = 2, stride_words = 8;

void measure(int rank, std::size_t blocks, double budget_ms) {
  const std::size_t bytes = blocks * block_words * sizeof(long);
  const int words = static_cast<int>(blocks) * block_words;
  RmaWindow window(false, blocks * stride_words * sizeof(long));
  Buffer packed(bytes);
  MPI_Datatype column = MPI_DATATYPE_NULL;
  MPI_Type_vector(static_cast<int>(blocks), block_words, stride_words, MPI_LONG, &column);
  MPI_Type_commit(&column);
  packed.fill(bytes, blocks);
  if (rank == 0) MPI_Win_lock_all(0, window.win);
  const auto report = [&](const char* which, const Samples& us) {
    if (rank == 0) row("rma_blocks", which, bytes, static_cast<int>(blocks), "time", "us", us);
  };
  report("put", time_batches(rank, 1, budget_ms, [&] {
           MPI_Put(packed.data(), words, MPI_LONG, 1, 0, 1, column, window.win);
           MPI_Win_flush(1, window.win);
         }));
  if (rank == 0) std::memset(packed.data(), 0, bytes);
  report("get", time_batches(rank, 1, budget_ms, [&] {
           MPI_Get(packed.data(), words, MPI_LONG, 1, 0, 1, column, window.win);
           MPI_Win_flush(1, window.win);
         }));
  if (rank == 0) packed.check(bytes, blocks, "what was put and got");
  report("accumulate", time_batches(rank, 1, budget_ms, [&] {
           MPI_Accumulate(packed.data(), words, MPI_LONG, 1, 0, 1, column, MPI_SUM, window.win);
           MPI_Win_flush(1, window.win);
         }));
  if (rank == 0) MPI_Win_unlock_all(window.win);
  MPI_Type_free(&column);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto counts = options.sizes("blocks", "16,1k,64k");
  const double budget_ms = options.number("budget-ms", 300);
  options.end();
  for (const std::size_t blocks : counts) measure(rank, blocks, budget_ms);
  MPI_Finalize();
}
