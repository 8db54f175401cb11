// What registering, copying and polling cost on this machine; shared by the component and the tool
// ring-calibrate.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <functional>

#include "opal/fabric/fabric.hpp"

#include "protocol/cost_model.hpp"
#include "protocol/polling_set.hpp"

namespace overlap::ring {

/// Runs of each measurement; the median counts.
inline constexpr std::size_t start_repetitions = 15;  ///< about a millisecond in all
inline constexpr std::size_t tool_repetitions = 201;

/// Measure R, C and V (P3.3).
///
/// @param look_up  finds a registered buffer in the registration cache, as every send from a
/// frequently used buffer does
[[nodiscard]] MeasuredCosts measure_costs(fabric::Device& device,
                                          const std::function<void()>& look_up,
                                          std::size_t repetitions = start_repetitions);

/// Enter the lines into the model for every size that it knows.
void fill(CostModel& model, const MeasuredCosts& costs);

// --- For the tool only -----------------------------------------------------------------

/// R and C of exactly this size, and `lookup_ns` as given; not from lines.
/// @param bytes  in [1, 65536]
/// @errors  register_ns is UINT32_MAX where the device refuses to register
[[nodiscard]] Costs measure_size(fabric::Device& device, std::uint32_t bytes,
                                 std::uint32_t lookup_ns, std::size_t repetitions);

/// Median time in ns of one look at the rings of so many idle peers (P2.6), laid out as in a
/// segment with these tunables.
[[nodiscard]] double measure_poll_ns(std::uint32_t peers, PollOrder order, std::uint32_t ring_slots,
                                     std::uint32_t slot_bytes);

}  // namespace overlap::ring
