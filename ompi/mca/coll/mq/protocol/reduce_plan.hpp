// Reductions as plans.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "plan.hpp"

namespace overlap::coll_mq {

/// May operands change places? If not, they are combined in the order of the ranks, which takes
/// copies where what was sent must not change.
enum class Order : std::uint8_t { any, by_rank };

struct ReduceShape {
  Order order = Order::by_rank;
  bool in_place = false;  ///< input and output are the same memory
  Rank radix = 2;         ///< of a tree: at least 2
};

enum class AllreduceShape : std::uint8_t {
  doubling,  ///< recursive doubling: log2(n) steps and vectors
  straight,  ///< each vector straight to all: one step, n - 1 vectors
  shares,    ///< each rank combines one share of all vectors: two steps and vectors
};

/// Everybody's vector, one block, to everybody's output: recursive doubling (P6.3); extra ranks
/// give their vector to a neighbour first and get the result last.
///
/// All ranks put the same parts together, so they get the same bits, if a op b has those of b op a
/// or the order is by_rank.
[[nodiscard]] Plan allreduce_plan(Rank rank, Rank size, ReduceShape shape = {});

/// The same at once: everybody sends its vector to everybody, and combines all in the order of the
/// ranks.
[[nodiscard]] Plan straight_allreduce_plan(Rank rank, Rank size, bool in_place = false);

/// The same for vectors that are worth more messages: each rank combines one share of all vectors,
/// in the order of the ranks, and sends it to all. Two messages to each other rank, and two vectors
/// in all, whatever their number. A block is a share, as many as there are ranks.
[[nodiscard]] Plan shared_allreduce_plan(Rank rank, Rank size, bool in_place = false);

/// To the root's output: a k-nomial tree over neighbours. Ordered by rank it has its top at rank 0,
/// which hands the result to the root. Only the root has an output.
[[nodiscard]] Plan reduce_plan(Rank rank, Rank size, Rank root, ReduceShape shape = {});

}  // namespace overlap::coll_mq
