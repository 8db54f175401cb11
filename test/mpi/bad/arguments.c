/* Call with arguments that MPI's rules forbid, and receive into buffers that are too small, with
 * MPI_ERRORS_RETURN. Prints "wrong: ..." for each answer that is not the right error class, and
 * "arguments: done" on rank 0. Two ranks.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, wrong;

static void expect(const char* what, int code, int expected) {
  int class = -1;
  MPI_Error_class(code, &class);
  if (class == expected) return;
  printf("wrong: rank %d: %s gave error class %d, not %d\n", rank, what, class, expected);
  wrong = 1;
}

static void bad_calls(void) {
  char byte = 0;
  int flag;
  MPI_Request request;
  MPI_Message message;
  MPI_Comm world = MPI_COMM_WORLD;
  expect("send to rank 2 of 2", MPI_Send(&byte, 1, MPI_BYTE, 2, 0, world), MPI_ERR_RANK);
  expect("isend to rank -7", MPI_Isend(&byte, 1, MPI_BYTE, -7, 0, world, &request), MPI_ERR_RANK);
  expect("send to any source", MPI_Send(&byte, 1, MPI_BYTE, MPI_ANY_SOURCE, 0, world),
         MPI_ERR_RANK);
  expect("recv from rank 2 of 2", MPI_Recv(&byte, 1, MPI_BYTE, 2, 0, world, MPI_STATUS_IGNORE),
         MPI_ERR_RANK);
  expect("irecv from rank -7", MPI_Irecv(&byte, 1, MPI_BYTE, -7, 0, world, &request), MPI_ERR_RANK);
  expect("iprobe of rank 2 of 2", MPI_Iprobe(2, 0, world, &flag, MPI_STATUS_IGNORE), MPI_ERR_RANK);
  expect("improbe of rank 2 of 2", MPI_Improbe(2, 0, world, &flag, &message, MPI_STATUS_IGNORE),
         MPI_ERR_RANK);
  expect("send with tag -3", MPI_Send(&byte, 1, MPI_BYTE, 0, -3, world), MPI_ERR_TAG);
  expect("send with any tag", MPI_Send(&byte, 1, MPI_BYTE, 0, MPI_ANY_TAG, world), MPI_ERR_TAG);
  expect("recv with tag -3", MPI_Recv(&byte, 1, MPI_BYTE, 0, -3, world, MPI_STATUS_IGNORE),
         MPI_ERR_TAG);
  expect("ssend of -1 bytes", MPI_Ssend(&byte, -1, MPI_BYTE, 0, 0, world), MPI_ERR_COUNT);
  expect("irecv of -1 bytes", MPI_Irecv(&byte, -1, MPI_BYTE, 0, 0, world, &request), MPI_ERR_COUNT);
  expect("send of no type", MPI_Send(&byte, 1, MPI_DATATYPE_NULL, 0, 0, world), MPI_ERR_TYPE);
  expect("recv of no type", MPI_Recv(&byte, 1, MPI_DATATYPE_NULL, 0, 0, world, MPI_STATUS_IGNORE),
         MPI_ERR_TYPE);
  MPI_Datatype raw;
  MPI_Type_vector(2, 1, 4, MPI_INT, &raw);
  expect("send of a type not committed", MPI_Send(&byte, 1, raw, 0, 0, world), MPI_ERR_TYPE);
  MPI_Type_free(&raw);
  expect("send of nothing to no process", MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, world),
         MPI_SUCCESS);
}

/* A message of bytes into room for half of it; the sender completes, the bytes behind stay. */
static void truncation(int bytes, int receive_first) {
  unsigned char* buffer = malloc((size_t)bytes);
  char what[80];
  snprintf(what, sizeof what, "%d bytes into %d, receive %s", bytes, bytes / 2,
           receive_first ? "first" : "late");
  if (rank == 0) {
    memset(buffer, 0x22, (size_t)bytes);
    MPI_Request send;
    if (receive_first) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Isend(buffer, bytes, MPI_BYTE, 1, 5, MPI_COMM_WORLD, &send);
    if (!receive_first) MPI_Barrier(MPI_COMM_WORLD);
    expect("the send of a truncated message", MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
  } else if (rank == 1) {
    memset(buffer, 0x11, (size_t)bytes);
    MPI_Request receive;
    if (!receive_first) MPI_Barrier(MPI_COMM_WORLD);
    MPI_Irecv(buffer, bytes / 2, MPI_BYTE, 0, 5, MPI_COMM_WORLD, &receive);
    if (receive_first) MPI_Barrier(MPI_COMM_WORLD);
    expect(what, MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_ERR_TRUNCATE);
    for (int i = bytes / 2; i < bytes; i++) {
      if (buffer[i] == 0x11) continue;
      printf("wrong: %s: byte %d behind the receive has changed\n", what, i);
      wrong = 1;
      break;
    }
  }
  free(buffer);
}

int main(int argc, char** argv) {
  static const int sizes[] = {2, 200, 5000, 20000, 70000, 500000};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  bad_calls();
  for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    truncation(sizes[i], 0);
    truncation(sizes[i], 1);
  }
  /* After all that, an ordinary message gets through. */
  int number = rank == 0 ? 4711 : 0;
  MPI_Bcast(&number, 1, MPI_INT, 0, MPI_COMM_WORLD);
  expect("broadcast afterwards", number == 4711 ? MPI_SUCCESS : MPI_ERR_OTHER, MPI_SUCCESS);
  MPI_Finalize();
  if (rank == 0) printf("arguments: done\n");
  return wrong;
}
