// Locks of one process, over all its windows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>

namespace overlap::newrma {

/// As the epochs of its windows count them. MPI_MODE_NOCHECK takes none.
///
/// @thread  one at a time
struct ProcessLocks {
  /// The program has them, or waits for them, and has not given them back: others may wait for it.
  std::size_t held = 0;
  /// It has gone on without them, though the calls that asked for them might have waited.
  std::size_t ahead = 0;
};

}  // namespace overlap::newrma
