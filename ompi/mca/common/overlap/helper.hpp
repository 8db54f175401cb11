// This process and the helper of its node.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/neighbours.hpp"
#include "opal/mca/common/overlap/node/helper_client.hpp"

namespace overlap {

/// Lets the helper of the node (ompi-progressd) watch this process, if there is one
/// (common_overlap_helper). Without it neighbours wake this process themselves.
///
/// @thread  the interrupt thread, where nothing else is said
class Helper {
 public:
  /// Ask for it, and start one where the parameter says so. Takes a fifth of a second at most.
  void begin(const NodeArea& node) noexcept;
  /// Say once that no helper could be started; the interrupt thread must not. @thread  MPI thread
  void report_failure() noexcept {
    if (not_started_.load(std::memory_order_relaxed)) [[unlikely]]
      report_failure_slow();
  }
  /// The interrupt thread has armed itself and is about to sleep.
  void note_armed() noexcept { client_.nudge(); }
  /// To sleep on; -1: not connected.
  [[nodiscard]] int descriptor() const noexcept { return client_.descriptor(); }
  /// The descriptor is readable. @returns  whether the helper has gone: look for messages once
  [[nodiscard]] bool has_gone(const NodeArea& node) noexcept;

 private:
  void report_failure_slow() noexcept;

  node::HelperClient client_;
  std::atomic<bool> not_started_{false};  ///< orders nothing
};

}  // namespace overlap
