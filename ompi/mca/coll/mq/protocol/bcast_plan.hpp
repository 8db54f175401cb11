// Broadcasts as plans.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "plan.hpp"

namespace overlap::coll_mq {

struct BcastShape {
  Rank radix = 2;              ///< of the tree, at least 2: 2 is the binomial one
  std::uint32_t segments = 1;  ///< blocks that travel one behind another; at most 65535
};

/// A k-nomial tree. A block is a segment of the buffer, which is Buffer::output at every rank, the
/// root's too. A rank passes each segment on as soon as it has it.
///
/// The ranks that one talks to, for any root, are those of a circle: r + m k^i and r - m k^i.
[[nodiscard]] Plan bcast_plan(Rank rank, Rank size, Rank root, BcastShape shape = {});

}  // namespace overlap::coll_mq
