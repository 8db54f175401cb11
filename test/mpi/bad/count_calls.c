/* LD_PRELOAD this to count calls of poll(2), and of the machine topologies that hwloc reads: a
 * line "poll calls N" and a line "topology loads N" on standard error at the end of the process. */
/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>

static unsigned long calls, loads;

int poll(struct pollfd* descriptors, nfds_t count, int timeout_ms) {
  static int (*next)(struct pollfd*, nfds_t, int);
  if (!next) next = (int (*)(struct pollfd*, nfds_t, int))dlsym(RTLD_NEXT, "poll");
  __atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
  return next(descriptors, count, timeout_ms);
}

int hwloc_topology_load(void* topology) {
  static int (*next)(void*);
  if (!next) next = (int (*)(void*))dlsym(RTLD_NEXT, "hwloc_topology_load");
  __atomic_add_fetch(&loads, 1, __ATOMIC_RELAXED);
  return next(topology);
}

__attribute__((destructor)) static void report(void) {
  fprintf(stderr, "poll calls %lu\ntopology loads %lu\n", calls, loads);
}
