// Exchanges of blocks between all ranks as plans.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "plan.hpp"

namespace overlap::coll_mq {

enum class ExchangeShape : std::uint8_t {
  bruck,     ///< log2(n) rounds with up to half of the blocks each (Bruck and others, 1997)
  straight,  ///< each block straight to its rank, at once: n - 1 peers
};

/// A block is what one rank sends to another: input[i] goes to rank i, output[i] comes from it.
[[nodiscard]] Plan alltoall_plan(Rank rank, Rank size, ExchangeShape shape = ExchangeShape::bruck,
                                 bool in_place = false);

/// Every rank's block, input[0], to everybody's output[rank].
///
/// @param in_place  the rank's own block is in output[rank]
[[nodiscard]] Plan allgather_plan(Rank rank, Rank size, ExchangeShape shape = ExchangeShape::bruck,
                                  bool in_place = false);

}  // namespace overlap::coll_mq
