// Which plan a collective that does not block has: few steps, few messages, or few bytes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

#include "exchange_plan.hpp"
#include "reduce_plan.hpp"

namespace overlap::coll_mq {

// A step that waits for a message of another rank wakes that rank where it computes, and ends as
// much later; a message takes time of the call that starts. So among few ranks everything goes
// straight to everybody, at once. Among many, large blocks do, which would be sent several times
// otherwise. All ranks choose alike: by sizes that MPI says are alike.

/// Bytes that are sent as often as there are ranks for the sake of one step.
inline constexpr std::uint64_t repeated_max_bytes = 1024;
/// Ranks that one has a connection to for the sake of large blocks.
inline constexpr Rank connected_max = 64;

/// @param few  ranks of a communicator whose collectives have one step, if at all possible
[[nodiscard]] constexpr Rank choose_barrier_radix(Rank size, Rank few, Rank radix) noexcept {
  return size <= few ? std::max(size, radix) : radix;
}

/// The tree of a broadcast or a reduction to a root.
[[nodiscard]] constexpr Rank choose_tree_radix(Rank size, Rank few, std::uint64_t bytes) noexcept {
  return size <= few && bytes <= repeated_max_bytes ? std::max(size, Rank{2}) : 2;
}

/// @param block_bytes  from one rank to another, or from one to all
[[nodiscard]] constexpr ExchangeShape choose_exchange(Rank size, Rank few,
                                                      std::uint64_t block_bytes) noexcept {
  constexpr std::uint64_t block_min = 1024;
  const bool straight = size <= few || (size <= connected_max && block_bytes >= block_min);
  return straight ? ExchangeShape::straight : ExchangeShape::bruck;
}

/// @param share_bytes  of one of as many shares of the vector as there are ranks
[[nodiscard]] constexpr AllreduceShape choose_allreduce(Rank size, Rank few,
                                                        std::uint64_t vector_bytes,
                                                        std::uint64_t share_bytes) noexcept {
  constexpr std::uint64_t share_min = 8192;
  if (size <= 2) return AllreduceShape::doubling;
  if (size <= few && vector_bytes <= repeated_max_bytes) return AllreduceShape::straight;
  if (size <= connected_max && share_bytes >= share_min) return AllreduceShape::shares;
  return AllreduceShape::doubling;
}

}  // namespace overlap::coll_mq
