/* LD_PRELOAD this to have the software device refuse queue pairs, as adapters do that have none
 * left: the first REFUSED_QUEUE_PAIRS of each process. Its client makes a file in memory for each.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int memfd_create(const char* name, unsigned flags) {
  static int left = -1;
  const char* wanted = getenv("REFUSED_QUEUE_PAIRS");
  if (left < 0) left = wanted != NULL ? atoi(wanted) : 0;
  if (left > 0 && strcmp(name, "send queue") == 0) {
    --left;
    errno = ENOMEM;
    return -1;
  }
  return (int)syscall(SYS_memfd_create, name, flags);
}
