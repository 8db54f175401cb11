/* LD_PRELOAD this to have the software device refuse large user buffers; or, where REFUSED_BYTES is
 * set, the first three (REFUSED_TIMES) registrations of so many bytes alone. Its client asks
 * msync() whether memory is mapped; of what btl/ring registers for itself at its defaults the three
 * lengths are known. */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_refused(size_t length) {
  static int refused = 0;
  const char* bytes = getenv("REFUSED_BYTES");
  const char* times = getenv("REFUSED_TIMES");
  if (bytes != NULL)
    return length == strtoul(bytes, NULL, 10) && ++refused <= (times != NULL ? atoi(times) : 3);
  return length >= 60000 && length != 100 * 2048 && length != 32 * 8192 && length != 128 * 8192;
}

int msync(void* address, size_t length, int flags) {
  if (is_refused(length)) {
    errno = ENOMEM;
    return -1;
  }
  return (int)syscall(SYS_msync, address, length, flags);
}
