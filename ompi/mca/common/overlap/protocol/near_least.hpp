// What something takes, of times that other things make longer.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

namespace overlap {

/// A moving average near the least: what makes a copy slow (memory touched first, a processor lost)
/// says nothing about its way.
[[nodiscard]] constexpr float near_least(float average, float now) noexcept {
  constexpr float weight_down = 0.5F, weight_up = 0.125F;
  const float weight = now < average ? weight_down : weight_up;
  return average + weight * (std::min(now, 2 * average) - average);
}

}  // namespace overlap
