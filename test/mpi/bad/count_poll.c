/* LD_PRELOAD this to count the calls of poll(2): one line "poll calls N" on standard error at the
 * end of the process. */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

static unsigned long calls;

int poll(struct pollfd* descriptors, nfds_t count, int timeout_ms) {
  static int (*next)(struct pollfd*, nfds_t, int);
  if (!next) next = (int (*)(struct pollfd*, nfds_t, int))dlsym(RTLD_NEXT, "poll");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return next(descriptors, count, timeout_ms);
}

__attribute__((destructor)) static void report(void) { fprintf(stderr, "poll calls %lu\n", calls); }
