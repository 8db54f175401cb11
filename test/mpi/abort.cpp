// Field: MPI_Abort in the middle of traffic, or a peer that is killed: run.sh checks that the job
// ends at once and leaves nothing behind.
// SPDX-License-Identifier: BSD-3-Clause
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

int main(int argc, char** argv) {
  constexpr int bytes = 300000, depth = 8;
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  std::vector<unsigned char> in(bytes * depth), out(bytes);
  for (int round = 0;; ++round) {
    MPI_Request requests[2 * depth];
    for (int i = 0; i < depth; ++i)
      MPI_Irecv(in.data() + i * bytes, i % 2 == 0 ? bytes : 100, MPI_BYTE, rank ^ 1, i,
                MPI_COMM_WORLD, &requests[i]);
    if (round == 20 && rank == 1) {
      std::fprintf(stderr, "in the middle\n");
      if (std::strcmp(argv[1], "kill") == 0) kill(getpid(), SIGKILL);
      MPI_Abort(MPI_COMM_WORLD, 7);
    }
    for (int i = 0; i < depth; ++i)
      MPI_Isend(out.data(), i % 2 == 0 ? bytes : 100, MPI_BYTE, rank ^ 1, i, MPI_COMM_WORLD,
                &requests[depth + i]);
    MPI_Waitall(2 * depth, requests, MPI_STATUSES_IGNORE);
  }
}
