/* Epochs in which rank 1 dies, or whose ranks do not agree on the component: epoch KIND [live].
 * SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { bytes = 300000, rounds = 200 };

static int rank;
static MPI_Win win;
static char* memory;
static char data[bytes];

static void die_in_round(int round, int live) {
  if (round != rounds / 2 || rank != 1 || live) return;
  fprintf(stderr, "in the middle\n");
  kill(getpid(), SIGKILL);
}

static void locks(int live) {
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    die_in_round(i, live);
    MPI_Put(data, bytes, MPI_BYTE, 0, 0, bytes, MPI_BYTE, win);
    MPI_Win_unlock(0, win);
  }
}

static void flushes(int live) {
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < rounds; ++i) {
    MPI_Put(data, bytes, MPI_BYTE, 1 - rank, 0, bytes, MPI_BYTE, win);
    MPI_Get(data, bytes, MPI_BYTE, 1 - rank, 0, bytes, MPI_BYTE, win);
    die_in_round(i, live);
    MPI_Win_flush_all(win);
  }
  MPI_Win_unlock_all(win);
}

static void fences(int live) {
  MPI_Win_fence(0, win);
  for (int i = 0; i < rounds; ++i) {
    MPI_Put(data, bytes, MPI_BYTE, 1 - rank, 0, bytes, MPI_BYTE, win);
    die_in_round(i, live);
    MPI_Win_fence(0, win);
  }
}

static void exposures(int live) {
  MPI_Group all, other;
  const int peer = 1 - rank;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &peer, &other);
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_post(other, 0, win);
    die_in_round(i, live);
    MPI_Win_start(other, 0, win);
    MPI_Put(data, bytes, MPI_BYTE, peer, 0, bytes, MPI_BYTE, win);
    MPI_Win_complete(win);
    MPI_Win_wait(win);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* kind = argc > 1 ? argv[1] : "";
  const int live = argc > 2;
  MPI_Win_allocate(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  if (strcmp(kind, "lock") == 0)
    locks(live);
  else if (strcmp(kind, "flush") == 0)
    flushes(live);
  else if (strcmp(kind, "fence") == 0)
    fences(live);
  else if (strcmp(kind, "exposure") == 0)
    exposures(live);
  else
    MPI_Abort(MPI_COMM_WORLD, 2);
  MPI_Win_free(&win);
  if (rank == 0) printf("epochs done\n");
  MPI_Finalize();
  return 0;
}
