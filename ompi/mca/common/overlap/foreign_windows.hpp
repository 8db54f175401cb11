// May other components than osc/newrma have windows?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>

namespace overlap {

/// Other components call BTLs from one-sided calls as they like, outside the progress lock: a
/// second thread must not be inside one then (P4.3). Only osc/newrma hears of their windows, as
/// each component is asked about each window.
class ForeignWindows {
 public:
  /// osc/newrma is open: it will say when each window begins. @thread  MPI thread
  void will_be_announced() noexcept { is_announced_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool is_announced() const noexcept {
    return is_announced_.load(std::memory_order_relaxed);
  }
  /// A window is being made, and the component is not chosen yet that will call BTLs.
  /// @thread  MPI thread, progress lock held: no second thread is within a turn
  void begin() noexcept { count_.fetch_add(1, std::memory_order_relaxed); }
  /// It is osc/newrma's own, or has gone. @thread  MPI thread, progress lock held
  void end() noexcept { count_.fetch_sub(1, std::memory_order_relaxed); }
  /// @thread  any; who calls BTLs because there is none holds the progress lock since before
  [[nodiscard]] bool possible() const noexcept {
    return !is_announced() || count_.load(std::memory_order_relaxed) != 0;
  }

 private:
  // Hints without the progress lock, which orders them.
  std::atomic<bool> is_announced_{false};
  std::atomic<int> count_{0};
};

/// Those of this process.
extern ForeignWindows foreign_windows;

}  // namespace overlap
