/* What does a rank lose whose target is late? Rank 0 puts a number to rank 1, which posts only
 * after 0.2 s of other work, and has as much work itself: once with MPI_Win_complete, which waits
 * for the post, once with MPIX_Win_icomplete, which does not.
 *
 *   . PREFIX/env.sh; mpicc late_target.c -o late_target $(pkg-config --cflags --libs mpix_overlap)
 *   mpirun -n 2 --mca pml speculative ./late_target
 * SPDX-License-Identifier: BSD-3-Clause */
#include <mpix_overlap.h>
#include <stdio.h>

static void work(void) {
  for (double end = MPI_Wtime() + 0.2; MPI_Wtime() < end;) continue;
}

int main(int argc, char** argv) {
  int rank, other, nonblocking, number = 42, memory = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Win win;
  MPI_Win_create(&memory, sizeof memory, sizeof memory, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPIX_Win_nonblocking(win, &nonblocking);
  MPI_Group all, peer;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, (other = 1 - rank, &other), &peer);
  for (int way = 0; way <= nonblocking; ++way) {
    MPI_Request ended = MPI_REQUEST_NULL;
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    if (rank == 1) {
      work();
      MPI_Win_post(peer, 0, win);
      MPI_Win_wait(win);
    } else {
      MPI_Win_start(peer, 0, win);
      MPI_Put(&number, 1, MPI_INT, 1, 0, 1, MPI_INT, win);
      way ? MPIX_Win_icomplete(win, &ended) : MPI_Win_complete(win);
      work();
      MPI_Wait(&ended, MPI_STATUS_IGNORE);
      printf("%.2f s with %s\n", MPI_Wtime() - start,
             way ? "MPIX_Win_icomplete" : "MPI_Win_complete");
    }
  }
  MPI_Group_free(&peer);
  MPI_Group_free(&all);
  MPI_Win_free(&win);
  MPI_Finalize();
  return rank == 1 && memory != number;
}
