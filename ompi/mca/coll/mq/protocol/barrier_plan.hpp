// Barriers as plans.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <span>

#include "plan.hpp"

namespace overlap::coll_mq {

struct BarrierShape {
  Rank radix = 2;  ///< at least 2
  Flavour flavour = Flavour::write_immediate;
};

/// Recursive doubling, or with another radix recursive k-ing (P6.3).
///
/// With radix k the largest N = m k^L of at most `size` ranks, m < k, take part in L rounds of
/// groups of k, and one of groups of m; a rank signals all others of its group and waits for them.
/// Each rank r >= N is extra: it signals r - N first and is signalled by it last. With k = 2 these
/// are the paper's L rounds of pairs.
///
/// The barrier of an intercommunicator is that of both groups together, one behind the other.
///
/// @returns  the plan of `rank`, in [0, size)
[[nodiscard]] Plan barrier_plan(Rank rank, Rank size, BarrierShape shape = {});

/// In two levels: the ranks of a node signal the first of them along a tree, these leaders have a
/// barrier, and let their nodes go. Edges inside a node have Reach::node: flags in memory serve.
///
/// @param node_of  [rank]: any number that the ranks of a node share
[[nodiscard]] Plan two_level_barrier_plan(Rank rank, std::span<const Rank> node_of,
                                          BarrierShape shape = {});

}  // namespace overlap::coll_mq
