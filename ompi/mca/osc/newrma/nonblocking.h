/* What osc/newrma offers beyond Open MPI's interface of one-sided communication: epochs that open
 * and close without waiting. The library libmpix_overlap (ompi/mpix) finds this table in a window
 * and calls through it; nobody else does. C11 and C++.
 *
 * The module of a window (win->w_osc_module) begins so:
 *
 *   struct { ompi_osc_base_module_t super; const struct overlap_nonblocking_calls *calls; ... }
 *
 * Arguments have been checked as MPI's own calls check theirs: window, group, rank of the target,
 * lock type, assertion and request are valid. A function returns MPI_SUCCESS and sets *request, or
 * an error class of MPI or an error code of Open MPI and leaves *request as it was; the caller
 * invokes the window's error handler. Threads call as they call MPI.
 *
 * A member is never moved or removed: new ones go to the end, and the version is raised.
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef OVERLAP_NONBLOCKING_H
#define OVERLAP_NONBLOCKING_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ompi_group_t;
struct ompi_request_t;
struct ompi_win_t;

/* "overepoc" */
#define OVERLAP_NONBLOCKING_MAGIC UINT64_C(0x6f76657265706f63)
#define OVERLAP_NONBLOCKING_VERSION 1

struct overlap_nonblocking_calls {
  uint64_t magic;   /* OVERLAP_NONBLOCKING_MAGIC */
  uint32_t version; /* OVERLAP_NONBLOCKING_VERSION of whoever filled the table */

  /* Close the fence epoch that is open, if one is, and open the next. */
  int (*ifence)(int assertion, struct ompi_win_t* win, struct ompi_request_t** request);

  /* Exposure epoch towards a group: opened by ipost, closed by iwait. */
  int (*ipost)(struct ompi_group_t* group, int assertion, struct ompi_win_t* win,
               struct ompi_request_t** request);
  /* Access epoch towards a group: opened by istart, closed by icomplete. */
  int (*istart)(struct ompi_group_t* group, int assertion, struct ompi_win_t* win,
                struct ompi_request_t** request);
  int (*icomplete)(struct ompi_win_t* win, struct ompi_request_t** request);
  int (*iwait)(struct ompi_win_t* win, struct ompi_request_t** request);

  /* Access epoch towards one target, or all. */
  int (*ilock)(int lock_type, int target, int assertion, struct ompi_win_t* win,
               struct ompi_request_t** request);
  int (*iunlock)(int target, struct ompi_win_t* win, struct ompi_request_t** request);
  int (*ilock_all)(int assertion, struct ompi_win_t* win, struct ompi_request_t** request);
  int (*iunlock_all)(struct ompi_win_t* win, struct ompi_request_t** request);

  /* What was issued before, to one target or to all: complete at both sides, or (local) at this
   * one. */
  int (*iflush)(int target, struct ompi_win_t* win, struct ompi_request_t** request);
  int (*iflush_local)(int target, struct ompi_win_t* win, struct ompi_request_t** request);
  int (*iflush_all)(struct ompi_win_t* win, struct ompi_request_t** request);
  int (*iflush_local_all)(struct ompi_win_t* win, struct ompi_request_t** request);
};

#ifdef __cplusplus
}
#endif

#endif
