/* LD_PRELOAD this to be a kernel that forbids cross-memory attach. */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/uio.h>

ssize_t process_vm_readv(pid_t pid, const struct iovec* local, unsigned long local_count,
                         const struct iovec* remote, unsigned long remote_count,
                         unsigned long flags) {
  (void)pid, (void)local, (void)local_count, (void)remote, (void)remote_count, (void)flags;
  errno = EPERM;
  return -1;
}

ssize_t process_vm_writev(pid_t pid, const struct iovec* local, unsigned long local_count,
                          const struct iovec* remote, unsigned long remote_count,
                          unsigned long flags) {
  return process_vm_readv(pid, local, local_count, remote, remote_count, flags);
}
