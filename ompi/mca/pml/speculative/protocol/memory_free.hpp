// Which receives of an envelope are known to have no RTR out that names memory.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap::speculative {

/// What is known is a range of the order of posting. An RTR makes its own receive, and what is
/// posted after it, unknown; what is known once stays known otherwise, as an RTR never begins to
/// name memory later. So a program that cancels thousands of receives of one envelope has each
/// looked at once, in whatever order it cancels them.
class MemoryFreeRange {
 public:
  /// An RTR goes out for a receive. @param order  of posting
  void offered(std::uint64_t order) noexcept { until_ = std::min(until_, order); }

  /// Has no receive of the envelope, from this one on, an RTR out that names memory?
  /// @param posted  a TagTable of receives, `op` in it
  /// @param names_memory  names_memory(receive) -> bool: has it one?
  template <class Op, class Table, class NamesMemory>
  [[nodiscard]] bool from_on(Op& op, Table& posted, NamesMemory&& names_memory) noexcept {
    if (from_ >= until_) from_ = until_ = op.order;  // nothing is known
    for (Op* each = &op; each != nullptr && each->order < from_; each = posted.find_after(*each)) {
      if (names_memory(*each)) return false;
    }
    from_ = std::min(from_, op.order);
    Op* const youngest = posted.find_last(op.tag);
    for (Op* each = youngest; each != nullptr && each->order >= until_;
         each = posted.find_before(*each)) {
      if (!names_memory(*each)) continue;
      from_ = each->order + 1;
      until_ = youngest->order + 1;
      return each->order < op.order;
    }
    until_ = std::max(until_, youngest->order + 1);
    return true;
  }

 private:
  std::uint64_t from_ = 0;
  std::uint64_t until_ = 0;
};

}  // namespace overlap::speculative
