// Question: what does sending without a copy gain when some buffers are used once and others often?
//
// Expected (before the first run): faster with growing size, up to what a copy costs at 8 KiB;
// packed buffers a little better than those on pages of their own below 4 KiB, because they share
// registrations (frequent-buffer-eager-2010, Fig. 5).
//
// Buffer i of `buffers` is used i * `reuse` / buffers times, one after the other: the whole
// spectrum from seldom to `reuse` times. Each use is a round trip; a sample is half the mean round
// trip of one buffer, and `mean` is that of all messages.
//   packed     the buffers lie back to back
//   separate   each has pages of its own
// SPDX-License-Identifier: BSD-3-Clause
#include <cstddef>

#include "bench.hpp"

using namespace bench;

namespace {

void round_trip(int rank, void* out, void* in, int bytes) {
  if (rank == 0) MPI_Send(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
  MPI_Recv(in, bytes, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 1) MPI_Send(out, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

void measure(int rank, std::size_t bytes, bool packed, long buffers, long reuse) {
  const std::size_t pitch = packed ? bytes : (bytes + page_bytes - 1) / page_bytes * page_bytes;
  // Much of it, so that its end goes back to the system and its registrations with it.
  Buffer memory(std::max(pitch * static_cast<std::size_t>(buffers), std::size_t{1} << 20)),
      in(bytes);
  const int n = static_cast<int>(bytes);
  for (int i = 0; i < 10; ++i) round_trip(rank, in.data(), in.data(), n);  // connections
  MPI_Barrier(MPI_COMM_WORLD);
  Samples half, mean;
  double total_us = 0;
  long messages = 0;
  for (long i = 1; i <= buffers; ++i) {
    unsigned char* const out = memory.data() + pitch * static_cast<std::size_t>(i - 1);
    const long uses = std::max(i * reuse / buffers, 1L);
    const double begin = now_us();
    for (long use = 0; use < uses; ++use) {
      // The first word changes with each use: what arrives is what was written last, also from
      // registered memory.
      const std::uint64_t word =
          static_cast<std::uint64_t>(i) << 32U | static_cast<std::uint64_t>(use);
      std::memcpy(out, &word, sizeof word);
      round_trip(rank, out, in.data(), n);
      if (std::memcmp(in.data(), &word, sizeof word) == 0) continue;
      std::fprintf(stderr, "bench: reuse: use %ld of buffer %ld has brought old data\n", use, i);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
    const double us = now_us() - begin;
    total_us += us;
    messages += uses;
    half.add(us / 2 / static_cast<double>(uses));
  }
  mean.add(total_us / 2 / static_cast<double>(messages));
  if (rank != 0) return;
  row("reuse", packed ? "packed" : "separate", bytes, 0, "half_round_trip", "us", half);
  row("reuse", packed ? "packed" : "separate", bytes, 0, "mean", "us", mean);
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "128..8k");
  const long buffers = static_cast<long>(options.number("buffers", 1000));
  const long reuse = static_cast<long>(options.number("reuse", 1000));
  options.end();
  for (const std::size_t bytes : sizes)
    for (const bool packed : {true, false})
      measure(rank, std::max<std::size_t>(bytes, 8), packed, buffers, reuse);
  MPI_Finalize();
}
