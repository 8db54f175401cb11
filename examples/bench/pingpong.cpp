// Question: how long does one message take, and at what bandwidth, from 0 B to 4 MiB?
//
// Expected (before the first run): over vader about 0.3 us for 8 B, ratio speculative / ob1 at
// most 1.00 from 0 B to 4 KiB (never above 1.03), bandwidth ratio at least 1.00 from 64 KiB to 4
// MiB; about 8.7 ms for 1 MiB at 1 Gbit/s.
//
// A sample is half the time of one round trip (of `batch` round trips for short messages, so that
// reading the clock does not count). Each message differs from the one before it; every byte is
// checked in a pass that is not timed.
// SPDX-License-Identifier: BSD-3-Clause
#include "bench.hpp"

using namespace bench;

namespace {

/// One round trip, both sides; rank 0 begins.
void round_trip(int rank, Buffer& out, Buffer& in, int bytes) {
  if (rank == 0) {
    MPI_Send(out.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD);
    MPI_Recv(in.data(), bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(in.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out.data(), bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
  }
}

void check_pass(int rank, Buffer& out, Buffer& in, std::size_t bytes) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    out.fill(bytes, 2 * i + static_cast<std::uint64_t>(rank));
    round_trip(rank, out, in, static_cast<int>(bytes));
    in.check(bytes, 2 * i + static_cast<std::uint64_t>(1 - rank), "pingpong");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rank = start(&argc, &argv, 2);
  Options options(argc, argv);
  const auto sizes = options.sizes("sizes", "0..4m");
  const double budget_ms = options.number("budget-ms", 150);
  const long most = static_cast<long>(options.number("samples", 2000));
  options.end();

  for (const std::size_t bytes : sizes) {
    Buffer out(bytes), in(bytes);
    const long batch = bytes <= 8192 ? 20 : bytes <= 65536 ? 4 : 1;
    std::uint64_t stamp = 0;
    auto sample = [&] {
      if (batch == 1) out.stamp(bytes, ++stamp);
      const double begin = now_us();
      for (long i = 0; i < batch; ++i) {
        if (batch > 1) out.stamp(bytes, ++stamp);
        round_trip(rank, out, in, static_cast<int>(bytes));
      }
      return (now_us() - begin) / 2.0 / static_cast<double>(batch);
    };

    check_pass(rank, out, in, bytes);
    for (int i = 0; i < 3; ++i) sample();
    Samples warm;
    for (int i = 0; i < 5; ++i) warm.add(sample());
    const long n = samples_for(budget_ms, warm.median() * 2 * static_cast<double>(batch), 10, most);
    MPI_Barrier(MPI_COMM_WORLD);
    Samples latency, bandwidth;
    for (Pace pace(n, budget_ms); pace.next();) {
      const double us = sample();
      latency.add(us);
      bandwidth.add(static_cast<double>(bytes) / us);
    }
    if (rank == 0) {
      row("pingpong", "-", bytes, 0, "half_round_trip", "us", latency);
      if (bytes >= 1024) row("pingpong", "-", bytes, 0, "bandwidth", "MB/s", bandwidth);
    }
  }
  MPI_Finalize();
}
