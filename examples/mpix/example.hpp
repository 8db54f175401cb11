// What these examples share: which calls to use, the time, and the result.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpix_overlap.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace example {

inline int rank = 0, ranks = 1;

/// PROGRAM [blocking | nonblocking] [NUMBER]
struct Options {
  bool nonblocking = true;
  long number;
};

inline Options start(int argc, char** argv, long number) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  Options options{true, number};
  bool good = argc <= 3;
  if (argc > 1) {
    options.nonblocking = std::strcmp(argv[1], "blocking") != 0;
    good = good && (!options.nonblocking || std::strcmp(argv[1], "nonblocking") == 0);
  }
  if (argc > 2) options.number = std::strtol(argv[2], nullptr, 10);
  if (!good || options.number < 1) {
    if (rank == 0) std::fprintf(stderr, "usage: %s [blocking | nonblocking] [NUMBER]\n", argv[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  return options;
}

/// A window whose epochs touch memory of their own, so that none has to wait for another.
template <class Type>
MPI_Win allocate(std::size_t count, Type*& memory) {
  MPI_Info info = MPI_INFO_NULL;
  MPI_Info_create(&info);
  for (const char* key : {"access_after_access", "access_after_exposure", "exposure_after_exposure",
                          "exposure_after_access"})
    MPI_Info_set(info, key, "true");
  MPI_Win win = MPI_WIN_NULL;
  MPI_Win_allocate(static_cast<MPI_Aint>(count * sizeof(Type)), sizeof(Type), info, MPI_COMM_WORLD,
                   &memory, &win);
  MPI_Info_free(&info);
  return win;
}

/// Without non-blocking epochs the blocking calls do the same.
inline void settle(Options& options, MPI_Win win) {
  int there = 0;
  MPIX_Win_nonblocking(win, &there);
  if (options.nonblocking && there == 0 && rank == 0)
    std::printf("the window has no non-blocking epochs\n");
  options.nonblocking = options.nonblocking && there != 0;
}

/// Numbers that every rank can compute for every other one.
inline std::uint64_t mix(std::uint64_t x) {
  x = (x + 0x9E3779B97F4A7C15u) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

/// Print what came out; the exit status of the program. Collective.
inline int finish(const Options& options, const char* what, double seconds, bool right) {
  int own = right ? 1 : 0, all = 0;
  MPI_Allreduce(&own, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (rank == 0)
    std::printf("%s: %s with %s calls in %.4f s\n", what, all != 0 ? "right" : "WRONG",
                options.nonblocking ? "non-blocking" : "blocking", seconds);
  MPI_Finalize();
  return all != 0 ? 0 : 1;
}

}  // namespace example
