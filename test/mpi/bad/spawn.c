/* Two processes spawn two more of this program with an environment of their own and send a message
 * to each; prints "spawned processes: done" on rank 0. Takes NAME=VALUE for the spawned ones.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdio.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm others;
  MPI_Comm_get_parent(&others);
  int rank, number = 42;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int spawned = others != MPI_COMM_NULL;
  if (spawned) {
    MPI_Recv(&number, 1, MPI_INT, rank, 0, others, MPI_STATUS_IGNORE);
  } else {
    char* arguments[] = {argc > 1 ? argv[1] : "NAME=VALUE", argv[0], NULL};
    MPI_Comm_spawn("/usr/bin/env", arguments, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &others,
                   MPI_ERRCODES_IGNORE);
    MPI_Send(&number, 1, MPI_INT, rank, 0, others);
  }
  MPI_Comm_disconnect(&others);
  MPI_Finalize();
  if (!spawned && rank == 0) puts("spawned processes: done");
  return 0;
}
