// System calls of small messages: a small ping-pong for test/mpi/system_calls.sh to trace.
// SPDX-License-Identifier: BSD-3-Clause
#include <mpi.h>

#include <cstdio>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char word[8] = {};
  constexpr int turns = 20000;
  for (int turn = 0; turn < turns; ++turn) {
    if (rank == 0) {
      MPI_Send(word, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
      MPI_Recv(word, 8, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
      MPI_Recv(word, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(word, 8, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
    }
  }
  if (rank == 0) std::printf("%d round trips\n", turns);
  MPI_Finalize();
}
