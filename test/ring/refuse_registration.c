/* LD_PRELOAD this to have the software device refuse large user buffers. Its client asks msync()
 * whether memory is mapped; of what btl/ring registers for itself at its defaults the three lengths
 * are known. */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

int msync(void* address, size_t length, int flags) {
  const int own = length == 100 * 2048 || length == 32 * 8192 || length == 128 * 8192;
  if (length >= 60000 && !own) {
    errno = ENOMEM;
    return -1;
  }
  return (int)syscall(SYS_msync, address, length, flags);
}
