// Is there a core to spare on this node, and where may a thread that copies sit?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <pthread.h>

namespace overlap {

/// Has the job more cores on this node than its processes use: one each, those that each is bound
/// to alone, or OMP_NUM_THREADS? Within the quota of its control group, and not where Slurm's
/// grant says that some of those in sight may be other jobs'. A thread that copies beside a full
/// node takes its time from the application.
/// @returns  nullptr, or what rules it out, for messages
[[nodiscard]] const char* why_no_core_to_spare() noexcept;

/// Give back what has been read of the node.
void forget_cores() noexcept;

/// Let a thread of this process run on all cores of the NUMA nodes that the caller is bound to
/// (P4.6): on the caller's own core alone it could only work while that waits.
/// @thread  MPI thread
void widen_binding(pthread_t thread) noexcept;

}  // namespace overlap
