/* Exchange messages of many sizes between all pairs and verify every byte; prints "all bytes right"
 * on rank 0.
 *
 * Each turn has the receive first, the send first or neither, all in one envelope, so that offers
 * of buffers cross, are used and are mispredicted. Takes the number of turns (default 60).
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFERS = 4, GUARD = 64 };

static const int sizes[] = {0, 1, 100, 4095, 4096, 5000, 65536, 100001, 400000, 1048583};
static const int sizes_count = sizeof sizes / sizeof *sizes;

static unsigned char byte_of(int source, int turn, int index, int place) {
  return (
      unsigned char)((unsigned)(source * 7 + turn * 31 + index * 113 + place * 5 + place / 251));
}

/* A large send whose receive comes late, then two receives that come early: an RTR that is taken
 * for the wrong message shows as contents that have changed places. Ranks in pairs. @returns  wrong
 * bytes */
static int late_then_early(int rank, int size) {
  enum { BYTES = 200000 };
  static char buffers[3][BYTES];
  int wrong = 0;
  MPI_Request requests[3];
  MPI_Comm aside; /* its messages are of other envelopes */
  MPI_Comm_dup(MPI_COMM_WORLD, &aside);
  const int peer = rank ^ 1;
  for (int sender = 0; sender < 2; sender++) {
    const int active = peer < size;
    for (int i = 0; i < 3; i++) memset(buffers[i], rank % 2 == sender ? i + 1 : 0, BYTES);
    if (active && rank % 2 == sender)
      MPI_Isend(buffers[0], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[0]);
    MPI_Barrier(aside);
    if (active && rank % 2 != sender) {
      MPI_Recv(buffers[0], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      for (int i = 1; i < 3; i++)
        MPI_Irecv(buffers[i], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[i]);
    } else if (active) {
      MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Barrier(aside);
    if (active && rank % 2 == sender)
      for (int i = 1; i < 3; i++)
        MPI_Isend(buffers[i], BYTES, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[i]);
    if (active) MPI_Waitall(2, requests + 1, MPI_STATUSES_IGNORE);
    for (int i = 0; active && i < 3; i++)
      for (int place = 0; place < BYTES; place++) wrong += buffers[i][place] != i + 1;
  }
  MPI_Comm_free(&aside);
  return wrong;
}

int main(int argc, char** argv) {
  int rank, size, turns = argc > 1 ? atoi(argv[1]) : 60, wrong = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const int largest = sizes[sizes_count - 1] + GUARD;
  unsigned char *out[BUFFERS], *in[BUFFERS];
  for (int i = 0; i < BUFFERS; i++) {
    out[i] = malloc((size_t)largest);
    in[i] = malloc((size_t)largest);
  }
  wrong += late_then_early(rank, size);
  for (int turn = 0; turn < turns; turn++) {
    MPI_Request sends[BUFFERS], receives[BUFFERS];
    int count[BUFFERS];
    for (int i = 0; i < BUFFERS; i++) {
      count[i] = sizes[(turn * 3 + i * (turn % 5 + 1)) % sizes_count];
      for (int place = 0; place < count[i]; place++) out[i][place] = byte_of(rank, turn, i, place);
      memset(in[i], 0xA5, (size_t)largest);
    }
    for (int step = 0; step < 2; step++) {
      if (step == turn % 2) {
        for (int i = 0; i < BUFFERS; i++)
          MPI_Irecv(in[i], largest - GUARD, MPI_BYTE, left, 1, MPI_COMM_WORLD, &receives[i]);
      } else {
        for (int i = 0; i < BUFFERS; i++)
          MPI_Isend(out[i], count[i], MPI_BYTE, right, 1, MPI_COMM_WORLD, &sends[i]);
      }
      if (step == 0 && turn % 3) MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Status statuses[BUFFERS];
    MPI_Waitall(BUFFERS, receives, statuses);
    MPI_Waitall(BUFFERS, sends, MPI_STATUSES_IGNORE);
    for (int i = 0; i < BUFFERS; i++) {
      int got = -1;
      MPI_Get_count(&statuses[i], MPI_BYTE, &got);
      wrong += got != count[i];
      for (int place = 0; place < largest; place++)
        wrong += in[i][place] != (place < count[i] ? byte_of(left, turn, i, place) : 0xA5);
    }
  }
  int all_wrong = 0;
  MPI_Allreduce(&wrong, &all_wrong, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) printf(all_wrong ? "%d bytes wrong\n" : "all bytes right\n", all_wrong);
  for (int i = 0; i < BUFFERS; i++) {
    free(out[i]);
    free(in[i]);
  }
  MPI_Finalize();
  return all_wrong != 0;
}
