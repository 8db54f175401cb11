/* Non-blocking epochs of one-sided communication, an extension of MPI. C99 and C++.
 *
 * Each call is the blocking one of MPI (MPIX_Win_ifence: MPI_Win_fence) with a request at the end,
 * which MPI_Wait, MPI_Test and their kin complete as any other. Blocking and non-blocking calls
 * mix: an epoch may be opened by the one and closed by the other.
 *
 *   opening calls   ipost, istart, ilock, ilock_all (and ifence, as far as it opens). The request
 *                   is complete when it is made, and operations may be issued at once; they start
 *                   when the target is ready. Exceptions, where memory may be used without a call
 *                   then: the requests of ilock on a target whose memory this process maps (its
 *                   own always) and of ilock_all complete when the locks of that memory are
 *                   granted; that of ifence on shared windows when all have called it.
 *   closing calls   ifence, icomplete, iwait, iunlock, iunlock_all. The epoch ends for the text of
 *                   the program: what follows belongs to the next one. The request completes when
 *                   the epoch has, and not before may buffers of operations and the contents of
 *                   the window be touched.
 *   flushes         iflush and its variants. The request covers operations that were issued before
 *                   the call, not those that come after.
 *
 * An epoch that is opened while one before it is closed and not complete is deferred: its
 * operations are kept, and epochs become active in the order of the program.
 *
 * Only windows of Open MPI's one-sided component osc/newrma have these epochs; ask
 * MPIX_Win_nonblocking. On another window each call raises MPI_ERR_UNSUPPORTED_OPERATION through
 * the window's error handler, as all errors are raised. Further: MPI_ERR_WIN, MPI_ERR_ARG (request
 * is NULL), MPI_ERR_RANK, MPI_ERR_GROUP, MPI_ERR_LOCKTYPE, MPI_ERR_ASSERT, MPI_ERR_RMA_SYNC. After
 * an error *request is what it was.
 *
 *   mpicc program.c $(pkg-config --cflags --libs mpix_overlap)
 * SPDX-License-Identifier: BSD-3-Clause */
#ifndef MPIX_OVERLAP_H
#define MPIX_OVERLAP_H

#include <mpi.h>

/* Version of this interface; raised when a call is added. */
#define MPIX_OVERLAP_VERSION 1

#ifdef __cplusplus
extern "C" {
#endif

/* Set *flag to 1 if the window has non-blocking epochs, else to 0. Local, of any window. Errors:
 * MPI_ERR_WIN, MPI_ERR_ARG (flag is NULL). */
int MPIX_Win_nonblocking(MPI_Win win, int* flag);

/* MPI_Win_fence. The request completes when the epoch that the call closes has completed, at this
 * process both as origin and as target; with MPI_MODE_NOPRECEDE there is none. Collective over the
 * group of the window. assertion: MPI_MODE_NOSTORE, NOPUT, NOPRECEDE, NOSUCCEED. */
int MPIX_Win_ifence(int assertion, MPI_Win win, MPI_Request* request);

/* MPI_Win_post: open an exposure epoch for the origins in group. assertion: MPI_MODE_NOCHECK,
 * NOSTORE, NOPUT. */
int MPIX_Win_ipost(MPI_Group group, int assertion, MPI_Win win, MPI_Request* request);

/* MPI_Win_start: open an access epoch to the targets in group; their posts are not waited for.
 * assertion: MPI_MODE_NOCHECK. */
int MPIX_Win_istart(MPI_Group group, int assertion, MPI_Win win, MPI_Request* request);

/* MPI_Win_complete: close the epoch of start. The request completes when its operations are
 * complete at this process. */
int MPIX_Win_icomplete(MPI_Win win, MPI_Request* request);

/* MPI_Win_wait: close the epoch of post. The request completes when all origins have completed
 * theirs and their operations on this process's window are done. */
int MPIX_Win_iwait(MPI_Win win, MPI_Request* request);

/* MPI_Win_lock: open an access epoch to one target. lock_type: MPI_LOCK_SHARED or
 * MPI_LOCK_EXCLUSIVE; assertion: MPI_MODE_NOCHECK. */
int MPIX_Win_ilock(int lock_type, int target, int assertion, MPI_Win win, MPI_Request* request);

/* MPI_Win_unlock: close the epoch of lock. The request completes when its operations are complete
 * at this process and at the target. */
int MPIX_Win_iunlock(int target, MPI_Win win, MPI_Request* request);

/* MPI_Win_lock_all: open an access epoch to all processes of the window, with shared locks.
 * assertion: MPI_MODE_NOCHECK. */
int MPIX_Win_ilock_all(int assertion, MPI_Win win, MPI_Request* request);

/* MPI_Win_unlock_all: close the epoch of lock_all. The request completes as that of iunlock. */
int MPIX_Win_iunlock_all(MPI_Win win, MPI_Request* request);

/* MPI_Win_flush: the request completes when the operations to target that were issued before the
 * call are complete at this process and at the target. */
int MPIX_Win_iflush(int target, MPI_Win win, MPI_Request* request);

/* MPI_Win_flush_local: the same at this process only: their buffers may be used again. */
int MPIX_Win_iflush_local(int target, MPI_Win win, MPI_Request* request);

/* MPI_Win_flush_all: as iflush, for all targets. */
int MPIX_Win_iflush_all(MPI_Win win, MPI_Request* request);

/* MPI_Win_flush_local_all: as iflush_local, for all targets. */
int MPIX_Win_iflush_local_all(MPI_Win win, MPI_Request* request);

#ifdef __cplusplus
}
#endif

#endif
