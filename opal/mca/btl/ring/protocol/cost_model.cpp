// Thresholds from measured costs.
// SPDX-License-Identifier: BSD-3-Clause
#include "cost_model.hpp"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

namespace overlap::ring {

namespace {

std::uint32_t threshold_of(const Costs& costs, std::uint32_t speculation_pct) noexcept {
  if (costs.copy_ns <= costs.lookup_ns) return CostModel::never;
  const std::uint64_t gain = std::uint64_t{costs.copy_ns - costs.lookup_ns} * 100;
  const std::uint64_t cost = std::uint64_t{costs.register_ns} * speculation_pct;
  const std::uint64_t uses = (cost + gain - 1) / gain;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(uses, 1, CostModel::never - 1));
}

std::uint32_t bounded(std::uint64_t cost_ns) noexcept {
  constexpr std::uint64_t largest = std::numeric_limits<std::uint32_t>::max();
  return static_cast<std::uint32_t>(std::min(cost_ns, largest));
}

}  // namespace

std::optional<MeasuredCosts> parse_costs(std::string_view text) noexcept {
  MeasuredCosts costs;
  const char* at = text.data();
  const char* const end = at + text.size();
  bool first = true;
  for (std::uint32_t* number : {&costs.register_ns, &costs.register_page_ns, &costs.copy_ns,
                                &costs.copy_kib_ns, &costs.lookup_ns}) {
    if (!std::exchange(first, false) && (at == end || *at++ != ',')) return std::nullopt;
    const auto read = std::from_chars(at, end, *number);
    if (read.ec != std::errc() || *number > cost_max_ns) return std::nullopt;
    at = read.ptr;
  }
  return at == end ? std::optional(costs) : std::nullopt;
}

Costs costs_at(const MeasuredCosts& costs, std::uint32_t bytes) noexcept {
  constexpr std::uint32_t page_bytes = 4096;
  const std::uint64_t pages_more = (bytes - 1) / page_bytes;
  return {bounded(costs.register_ns + pages_more * costs.register_page_ns),
          bounded(costs.copy_ns + std::uint64_t{bytes} * costs.copy_kib_ns / 1024),
          costs.lookup_ns};
}

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
