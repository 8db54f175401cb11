/* Each call of mpix_overlap.h on windows of osc/newrma: every rank writes to its right neighbour,
 * and its requests are completed together. C99 and C++.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <mpix_overlap.h>
#include <stdio.h>

static int rank, size, left, right, faults;
static MPI_Request requests[16];
static int count;

static void succeeds(const char* what, int code) {
  if (code == MPI_SUCCESS && requests[count] != MPI_REQUEST_NULL) {
    ++count;
    return;
  }
  fprintf(stderr, "rank %d: %s: code %d\n", rank, what, code);
  ++faults;
}
/* `call` without its last argument, the request. */
#define START(call, ...)               \
  (requests[count] = MPI_REQUEST_NULL, \
   succeeds(#call, MPIX_Win_##call(__VA_ARGS__, &requests[count])))

static void wait_for_all(void) {
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  count = 0;
}

static void put(const int* value, MPI_Win win) {
  MPI_Put(value, 1, MPI_INT, right, 0, 1, MPI_INT, win);
}

/* What has the left neighbour written? */
static void expect(int turn, int* memory, MPI_Win win) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  if (*memory != 100 * turn + left) {
    fprintf(stderr, "rank %d: turn %d: %d\n", rank, turn, *memory);
    ++faults;
  }
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void run(int* memory, MPI_Win win) {
  MPI_Group all, from, to;
  int values[5], i, flag = 0;
  for (i = 0; i < 5; ++i) values[i] = 100 * i + rank;
  MPIX_Win_nonblocking(win, &flag);
  if (flag != 1) ++faults;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &left, &from);
  MPI_Group_incl(all, 1, &right, &to);

  START(ifence, MPI_MODE_NOPRECEDE, win);
  put(&values[1], win);
  START(ifence, MPI_MODE_NOSUCCEED, win);
  wait_for_all();
  expect(1, memory, win);

  START(ipost, from, 0, win);
  START(istart, to, 0, win);
  put(&values[2], win);
  START(icomplete, win);
  START(iwait, win);
  wait_for_all();
  expect(2, memory, win);

  START(ilock, MPI_LOCK_EXCLUSIVE, right, 0, win);
  put(&values[3], win);
  START(iflush_local, right, win);
  START(iflush, right, win);
  START(iunlock, right, win);
  wait_for_all();
  expect(3, memory, win);

  START(ilock_all, 0, win);
  put(&values[4], win);
  START(iflush_local_all, win);
  START(iflush_all, win);
  START(iunlock_all, win);
  wait_for_all();
  expect(4, memory, win);

  MPI_Group_free(&from);
  MPI_Group_free(&to);
  MPI_Group_free(&all);
}

int main(int argc, char** argv) {
  int own = 0;
  int* memory;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size;
  right = (rank + 1) % size;
  MPI_Win_create(&own, sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  run(&own, win);
  MPI_Win_free(&win);
  MPI_Win_allocate(sizeof own, sizeof own, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  run(memory, win);
  MPI_Win_free(&win);
  MPI_Finalize();
  return faults != 0;
}
