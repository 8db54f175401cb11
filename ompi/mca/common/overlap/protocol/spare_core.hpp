// Is a core to spare for threads that copy?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

namespace overlap {

/// What is known of a job on one node.
struct CoreUse {
  unsigned cores = 0;        ///< that the job may use
  unsigned processes = 1;    ///< of the job
  unsigned bound_cores = 0;  ///< of this process; others are taken to be alike
  unsigned threads = 1;      ///< of each process (OMP_NUM_THREADS)
  unsigned processors = 0;   ///< hardware threads of those cores
  unsigned granted = 0;      ///< by the batch system, processors or cores; 0: it does not say
  unsigned online = 0;       ///< hardware threads of the node
};

/// Has the batch system granted less of the node than is in sight? Where it confines the job to
/// that, it is the job's, whether processors or cores were counted. Where it does not, or the job
/// has a whole node of which the cores were counted, nobody knows which are others'; the system may
/// keep some of the node for itself besides.
[[nodiscard]] constexpr bool may_see_others_cores(const CoreUse& use) noexcept {
  const bool is_confined = use.processors < use.online && use.cores <= use.granted;
  return use.granted != 0 && use.granted < use.processors && !is_confined;
}

/// Each process needs the cores that it alone is bound to, and one for each of its threads. Those
/// that processes share (a socket for several), and no binding at all, say nothing of it.
///
/// @source  P4.6
[[nodiscard]] constexpr bool leaves_core_to_spare(const CoreUse& use) noexcept {
  const bool shares = use.bound_cores >= use.cores || use.bound_cores * use.processes > use.cores;
  const unsigned each = std::max({shares ? 1 : use.bound_cores, use.threads, 1U});
  return use.cores > use.processes * each;
}

}  // namespace overlap
