// How much of a barrier's time is free for the caller, measured as in the paper (P6.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "barrier_network.hpp"

namespace overlap::coll_mq::sim {

/// One block of work between the call and the wait: the largest that delays the end of the barrier
/// by no more than 1 %, in percent of the whole.
[[nodiscard]] double free_for_block_pct(BarrierNetwork& network);

/// Work in pieces with tests between, of the length that frees most and delays the end by no more
/// than 10 %: the end is seen a piece late.
[[nodiscard]] double free_with_tests_pct(BarrierNetwork& network);

/// All have a block of work that is longer than one rank is late. How much later than the work is
/// the barrier over?
[[nodiscard]] Nanoseconds delay_of_late_rank(BarrierNetwork& network, Rank ranks, Nanoseconds late);

}  // namespace overlap::coll_mq::sim
