// Preloaded: a node of eight processors, to which a job's launcher is not confined; each process
// is bound to the first. With HWLOC_SYNTHETIC="numa:1 core:8 pu:1" and HWLOC_THISSYSTEM=1 hwloc
// believes the same.
// SPDX-License-Identifier: BSD-3-Clause
#define _GNU_SOURCE
#include <sched.h>
#include <string.h>
#include <unistd.h>

int sched_getaffinity(pid_t process, size_t bytes, cpu_set_t* set) {
  int count = process == 0 || process == getpid() ? 1 : 8;
  memset(set, 0, bytes);
  for (int i = 0; i < count; ++i) {
    CPU_SET_S(i, bytes, set);
  }
  return 0;
}
