// What registering and copying cost on this machine; shared by the component and the tool ring-calibrate.
#pragma once

#include <cstdint>
#include <functional>

#include "opal/fabric/fabric.hpp"

#include "protocol/cost_model.hpp"

namespace overlap::ring {

/// Straight lines through what was measured.
struct MeasuredCosts {
  std::uint32_t register_ns;       ///< one page
  std::uint32_t register_page_ns;  ///< each page more
  std::uint32_t copy_ns;           ///< to begin a copy
  std::uint32_t copy_kib_ns;
  std::uint32_t lookup_ns;         ///< of a buffer that is registered: table and cache
};

/// Measure R, C and V (P3.3): medians of short runs, about a millisecond in all.
///
/// @param look_up  finds a registered buffer in the registration cache, as every send from a frequently used buffer does
[[nodiscard]] MeasuredCosts measure_costs(fabric::Device& device, const std::function<void()>& look_up);

/// Enter the lines into the model for every size that it knows.
void fill(CostModel& model, const MeasuredCosts& costs);

}  // namespace overlap::ring
