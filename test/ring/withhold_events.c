/* LD_PRELOAD this to have the events of the software device's connections come late, that is not at
 * all while a file of the name WITHHELD_EVENTS exists. Its client looks for them without blocking.
 */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t recvmsg(int socket, struct msghdr* header, int flags) {
  const char* name = getenv("WITHHELD_EVENTS");
  if (flags == (MSG_CMSG_CLOEXEC | MSG_DONTWAIT) && name != NULL && access(name, F_OK) == 0) {
    errno = EAGAIN;
    return -1;
  }
  return syscall(SYS_recvmsg, socket, header, flags);
}
