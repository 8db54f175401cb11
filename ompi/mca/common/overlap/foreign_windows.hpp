// Windows of other components than osc/newrma.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <atomic>

namespace overlap {

/// Other components call BTLs from one-sided calls as they like, outside the progress lock: a
/// second thread must not be inside one then (P4.3). Open MPI's table shows a window only after its
/// component has begun, and no lock orders that. But each component of the framework is asked about
/// each window before one is chosen: a listener among them, which takes none, hears of all.
///
/// @thread  any; written with the progress lock held, so that no second thread is within a turn;
/// who calls BTLs because there is none holds it since before. Elsewhere a hint.
class ForeignWindows {
 public:
  /// Is there one, or is one being made?
  [[nodiscard]] static bool any() noexcept { return count_.load(std::memory_order_relaxed) != 0; }

 private:
  friend class WindowListener;
  static std::atomic<int> count_;
};

/// Join the components that are asked, and leave them. @thread  MPI thread, in MPI_Init, after the
/// framework has chosen who is available, and in MPI_Finalize
void listen_for_windows() noexcept;
void stop_listening_for_windows() noexcept;

/// The caller makes this window, and enters BTLs under the progress lock only.
/// @thread  MPI thread, progress lock NOT held
void claim_window(ompi_win_t& win) noexcept;

}  // namespace overlap
