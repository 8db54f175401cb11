// Question: how much memory does a process of btl/ring register and hold for its peers?
//
// Expected (before the first run): with the default tunables at most 8 MiB per process, whatever
// the number of ranks, because only the peers in the polling set have rings.
//
// Every rank exchanges `messages` short messages with every other, so that each is connected to
// each and the polling set is full. The counter btl_ring_memory_max_bytes (MPI_T) holds the most
// memory for rings and buffers; the growth of the resident set between MPI_Init and the end holds
// everything, also what this program, the PML and the device's library need per peer.
// SPDX-License-Identifier: BSD-3-Clause
#include "counters.hpp"

using namespace bench;

namespace {

/// A line "Name:   n kB" of /proc/self/status, in bytes.
double status_bytes(const char* name) {
  std::FILE* file = std::fopen("/proc/self/status", "r");
  char line[256];
  double kib = 0;
  const std::size_t length = std::strlen(name);
  while (file != nullptr && std::fgets(line, sizeof line, file) != nullptr)
    if (std::strncmp(line, name, length) == 0 && line[length] == ':')
      kib = std::strtod(line + length + 1, nullptr);
  if (file != nullptr) std::fclose(file);
  return 1024 * kib;
}

void exchange(int rank, int size, long messages) {
  for (int step = 1; step < size; ++step) {
    const int to = (rank + step) % size, from = (rank + size - step) % size;
    for (long i = 0; i < messages; ++i) {
      long out = rank, in = -1;
      MPI_Sendrecv(&out, 1, MPI_LONG, to, 1, &in, 1, MPI_LONG, from, 1, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      if (in == from) continue;
      std::fprintf(stderr, "bench: memory: %ld instead of %d\n", in, from);
      MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
}

/// The values of all ranks, on rank 0.
Samples gather(double value, int size) {
  Samples all;
  all.values.resize(static_cast<std::size_t>(size));
  MPI_Gather(&value, 1, MPI_DOUBLE, all.values.data(), 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  Options options(argc, argv);
  const long messages = static_cast<long>(options.number("messages", 20));
  options.end();
  Counters counters("btl_ring_");
  const double before = status_bytes("VmRSS");
  exchange(rank, size, messages);
  auto now = counters.read();
  const bool known = now.count("memory_max_bytes") != 0;
  const Samples registered = gather(known ? now["memory_max_bytes"] / 1048576 : 0, size);
  const Samples resident = gather((status_bytes("VmRSS") - before) / 1048576, size);
  const Samples rings = gather(known ? now["rings_opened"] - now["rings_closed"] : 0, size);
  if (rank == 0) {
    if (!known) std::fprintf(stderr, "bench: memory: btl/ring is not in use\n");
    if (known) row("memory", "registered", 0, size, "memory", "MiB", registered);
    row("memory", "resident_growth", 0, size, "memory", "MiB", resident);
    if (known) row("memory", "rings_in", 0, size, "rings", "rings", rings);
  }
  counters.end();
  MPI_Finalize();
}
