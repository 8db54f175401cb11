// Operations of several calls that one rank is asked for together.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>

#include "protocol/epochs.hpp"
#include "protocol/operation_row.hpp"

namespace overlap::newrma {

class Window;

/// Operations of a window on one rank's memory that nobody has been asked for yet.
struct GatheredRow {
  Window* window = nullptr;  ///< nullptr: not in use
  Rank target = 0;
  OperationRow row;
};

/// Those of all windows of this process: few, whatever the number of windows and ranks.
///
/// @thread  progress lock held
class GatheredRows {
 public:
  [[nodiscard]] bool any() const noexcept { return used_ != 0; }
  /// @returns  an empty one; of all in use one that must be delivered first
  [[nodiscard]] GatheredRow& next() noexcept {
    for (GatheredRow& each : rows_) {
      if (each.window == nullptr) return each;
    }
    return rows_[victim_++ % rows_.size()];
  }
  void take(GatheredRow& row, Window& window, Rank target) noexcept {
    row.window = &window;
    row.target = target;
    ++used_;
  }
  void give(GatheredRow& row) noexcept {
    row.window = nullptr;
    row.row.clear();
    --used_;
  }
  /// @param act  called with each in use; may give it
  template <class Act>
  void for_each(Act&& act) {
    for (GatheredRow& each : rows_) {
      if (used_ == 0) return;
      if (each.window != nullptr) act(each);
    }
  }

 private:
  std::array<GatheredRow, 8> rows_;
  std::size_t used_ = 0;
  std::size_t victim_ = 0;
};

}  // namespace overlap::newrma
