// Thresholds from measured costs.
#include "cost_model.hpp"

#include <algorithm>

namespace overlap::ring {

namespace {

std::uint32_t threshold_of(const Costs& costs, std::uint32_t speculation_pct) noexcept {
  if (costs.copy_ns <= costs.lookup_ns) return CostModel::never;
  const std::uint64_t gain = std::uint64_t{costs.copy_ns - costs.lookup_ns} * 100;
  const std::uint64_t cost = std::uint64_t{costs.register_ns} * speculation_pct;
  const std::uint64_t uses = (cost + gain - 1) / gain;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(uses, 1, CostModel::never - 1));
}

}  // namespace

void CostModel::set(std::uint32_t bytes, Costs costs) noexcept {
  if (bytes < size_min_bytes) return;
  const auto index = static_cast<std::size_t>(std::bit_width(bytes) - 1);
  costs_[index] = costs;
  known_ |= 1U << index;
  recompute();
}

void CostModel::set_speculation(std::uint32_t percent) noexcept {
  speculation_pct_ = percent;
  recompute();
}

void CostModel::recompute() noexcept {
  std::uint32_t below = never;
  for (std::size_t i = 0; i < thresholds_.size(); ++i) {
    if ((known_ >> i & 1U) != 0) below = threshold_of(costs_[i], speculation_pct_);
    thresholds_[i] = below;
  }
}

}  // namespace overlap::ring
