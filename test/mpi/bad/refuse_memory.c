/* LD_PRELOAD this to be a process whose memory ends: after MPI_Init only ALLOWED_NEW more calls of
 * operator new succeed.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#include <stddef.h>
#include <stdlib.h>

int PMPI_Init(int* argc, char*** argv);
void _ZSt17__throw_bad_allocv(void) __attribute__((weak, noreturn));

static long left = -1; /* -1: as many as it likes */

/* operator new(std::size_t) */
void* _Znwm(size_t bytes) {
  void* memory = left != 0 ? malloc(bytes) : NULL;
  if (memory == NULL) _ZSt17__throw_bad_allocv();
  if (left > 0) --left;
  return memory;
}

int MPI_Init(int* argc, char*** argv) {
  const int rc = PMPI_Init(argc, argv);
  const char* allowed = getenv("ALLOWED_NEW");
  if (allowed != NULL) left = atol(allowed);
  return rc;
}
