/* Each call of mpix_overlap.h on windows of a component that has no non-blocking epochs, with valid
 * and with wrong arguments. C99 and C++. With "valid" as argument: without the wrong ones; with
 * "fatal": one call under MPI's own error handler.
 * SPDX-License-Identifier: BSD-3-Clause */
#include <mpix_overlap.h>
#include <stdio.h>
#include <string.h>

static int faults, handled, handled_class;

static void handler(MPI_Win* win, int* code, ...) {
  (void)win;
  ++handled;
  MPI_Error_class(*code, &handled_class);
}

/* The call has to return an error of class `expected`, raised once; MPI_SUCCESS: none. */
static void expect(const char* what, int code, int expected) {
  int class_of_code = -1;
  MPI_Error_class(code, &class_of_code);
  if (class_of_code != expected || handled != (expected != MPI_SUCCESS) ||
      (handled && handled_class != expected)) {
    fprintf(stderr, "%s: class %d (handler: %d times, class %d), expected %d\n", what,
            class_of_code, handled, handled_class, expected);
    ++faults;
  }
  handled = 0;
}
#define EXPECT(call, expected) expect(#call, call, expected)

static void unsupported(MPI_Win win, MPI_Group group) {
  MPI_Request request = MPI_REQUEST_NULL;
  int flag = -1;
  EXPECT(MPIX_Win_nonblocking(win, &flag), MPI_SUCCESS);
  if (flag != 0) {
    fprintf(stderr, "MPIX_Win_nonblocking: flag %d\n", flag);
    ++faults;
  }
  EXPECT(MPIX_Win_ifence(MPI_MODE_NOPRECEDE, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_ipost(group, MPI_MODE_NOPUT, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_istart(group, MPI_MODE_NOCHECK, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_icomplete(win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iwait(win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_ilock(MPI_LOCK_EXCLUSIVE, 0, 0, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iunlock(0, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_ilock_all(MPI_MODE_NOCHECK, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iunlock_all(win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iflush(0, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iflush_local(0, win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iflush_all(win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  EXPECT(MPIX_Win_iflush_local_all(win, &request), MPI_ERR_UNSUPPORTED_OPERATION);
  if (request != MPI_REQUEST_NULL) {
    fprintf(stderr, "a failed call has changed the request\n");
    ++faults;
  }
}

static void wrong_arguments(MPI_Win win, MPI_Group group) {
  MPI_Request request = MPI_REQUEST_NULL;
  int size = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  EXPECT(MPIX_Win_nonblocking(win, NULL), MPI_ERR_ARG);
  EXPECT(MPIX_Win_ifence(0, win, NULL), MPI_ERR_ARG);
  EXPECT(MPIX_Win_iflush_local_all(win, NULL), MPI_ERR_ARG);
  EXPECT(MPIX_Win_ifence(MPI_MODE_NOCHECK, win, &request), MPI_ERR_ASSERT);
  EXPECT(MPIX_Win_ipost(group, MPI_MODE_NOSUCCEED, win, &request), MPI_ERR_ASSERT);
  EXPECT(MPIX_Win_ipost(MPI_GROUP_NULL, 0, win, &request), MPI_ERR_GROUP);
  EXPECT(MPIX_Win_istart(group, MPI_MODE_NOPUT, win, &request), MPI_ERR_ASSERT);
  EXPECT(MPIX_Win_istart(MPI_GROUP_NULL, 0, win, &request), MPI_ERR_GROUP);
  EXPECT(MPIX_Win_ilock(-1, 0, 0, win, &request), MPI_ERR_LOCKTYPE);
  EXPECT(MPIX_Win_ilock(MPI_LOCK_SHARED, size, 0, win, &request), MPI_ERR_RANK);
  EXPECT(MPIX_Win_ilock(MPI_LOCK_SHARED, 0, MPI_MODE_NOPUT, win, &request), MPI_ERR_ASSERT);
  EXPECT(MPIX_Win_iunlock(-1, win, &request), MPI_ERR_RANK);
  EXPECT(MPIX_Win_ilock_all(MPI_MODE_NOSTORE, win, &request), MPI_ERR_ASSERT);
  EXPECT(MPIX_Win_iflush(MPI_PROC_NULL, win, &request), MPI_ERR_RANK);
  EXPECT(MPIX_Win_iflush_local(size, win, &request), MPI_ERR_RANK);
}

/* Errors without a window belong to MPI_COMM_WORLD. */
static void no_window(void) {
  MPI_Request request = MPI_REQUEST_NULL;
  int flag = -1, first, second;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Error_class(MPIX_Win_ifence(0, MPI_WIN_NULL, &request), &first);
  MPI_Error_class(MPIX_Win_nonblocking(MPI_WIN_NULL, &flag), &second);
  if (first != MPI_ERR_WIN || second != MPI_ERR_WIN || flag != -1) {
    fprintf(stderr, "MPI_WIN_NULL: classes %d and %d, flag %d\n", first, second, flag);
    ++faults;
  }
}

int main(int argc, char** argv) {
  static int memory[16];
  void* allocated;
  MPI_Win windows[2];
  MPI_Group group;
  MPI_Errhandler errhandler;
  int i;
  const int only_valid = argc > 1 && strcmp(argv[1], "valid") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  MPI_Win_allocate(sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &windows[0]);
  MPI_Win_create(memory, sizeof memory, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &windows[1]);
  if (argc > 1 && strcmp(argv[1], "fatal") == 0) {
    MPI_Request request;
    MPIX_Win_ilock(MPI_LOCK_SHARED, 0, 0, windows[1], &request);
  }
  MPI_Win_create_errhandler(handler, &errhandler);
  for (i = 0; i < 2; ++i) {
    MPI_Win_set_errhandler(windows[i], errhandler);
    unsupported(windows[i], group);
    if (!only_valid) wrong_arguments(windows[i], group);
  }
  if (!only_valid) no_window();
  MPI_Errhandler_free(&errhandler);
  MPI_Group_free(&group);
  MPI_Win_free(&windows[0]);
  MPI_Win_free(&windows[1]);
  MPI_Finalize();
  return faults != 0;
}
