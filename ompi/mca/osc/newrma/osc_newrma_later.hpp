// Copies that wait until what goes to other nodes has been posted (P5.5).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"

#include "osc_newrma_operation.hpp"

namespace overlap::newrma {

/// Puts and gets on memory that this process maps, in their order, piece by piece: a network moves
/// what was posted meanwhile, and is looked after between the pieces.
///
/// @thread  progress lock held
class LaterCopies {
 public:
  /// @param memory  where the target's buffer starts here
  void push(RmaOperation& operation, std::byte* memory) { waiting_.push({&operation, memory}); }
  [[nodiscard]] bool empty() const noexcept { return waiting_.empty(); }
  /// Copy the next piece. @returns  an operation that is done with it, or nullptr
  [[nodiscard]] RmaOperation* copy_piece();

 private:
  struct Copy {
    RmaOperation* operation;
    std::byte* memory;
  };

  RingQueue<Copy> waiting_;
  std::uint64_t copied_bytes_ = 0;  ///< of the first
};

}  // namespace overlap::newrma
