/* Stand-in for a header that packages of Open MPI 5 leave out: how a waiting thread gives way. */
/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAP_SUPPLIED_THREADS_PTHREADS_THREADS_H
#define OVERLAP_SUPPLIED_THREADS_PTHREADS_THREADS_H

#include <sched.h>

#define OPAL_THREAD_YIELD_WHEN_IDLE_DEFAULT false

static inline void opal_thread_yield(void) { sched_yield(); }

#endif
