// After how many uses does it pay to register a buffer? (P3.3)
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace overlap::ring {

/// R, C and V of one message size, as measured on this machine.
struct Costs {
  std::uint32_t register_ns;
  std::uint32_t copy_ns;
  std::uint32_t lookup_ns;

  friend bool operator==(const Costs&, const Costs&) = default;
};

/// Straight lines through what was measured.
struct MeasuredCosts {
  std::uint32_t register_ns = 0;       ///< one page
  std::uint32_t register_page_ns = 0;  ///< each page more
  std::uint32_t copy_ns = 0;           ///< to begin a copy
  std::uint32_t copy_kib_ns = 0;
  std::uint32_t lookup_ns = 0;  ///< of a buffer that is registered: table and cache

  friend bool operator==(const MeasuredCosts&, const MeasuredCosts&) = default;
};

constexpr std::uint32_t cost_max_ns = 1'000'000'000;

/// The five numbers in this order, each in [0, cost_max_ns], with commas between them.
/// @returns  nullopt for anything else
[[nodiscard]] std::optional<MeasuredCosts> parse_costs(std::string_view text) noexcept;

/// R, C and V of one size as the lines give them, each at most UINT32_MAX.
[[nodiscard]] Costs costs_at(const MeasuredCosts& costs, std::uint32_t bytes) noexcept;

/// Thresholds by size, ready to be looked up.
/// @source  P3.3; frequent-buffer-eager-2010 section 3.2, inequality (3)
class CostModel {
 public:
  static constexpr std::uint32_t size_min_bytes = 128;
  static constexpr std::uint32_t never = UINT32_MAX;

  CostModel() noexcept { thresholds_.fill(never); }

  /// Sizes between two powers of two have the threshold of the smaller one, sizes above the largest
  /// that of the largest.
  /// @param bytes  a power of two; below size_min_bytes: ignored
  void set(std::uint32_t bytes, Costs costs) noexcept;
  /// Register at this part of the uses that pay for the registration, in the hope of more.
  void set_speculation(std::uint32_t percent) noexcept;

  /// Uses before registering: ceil(R / (C - V) * percent / 100), at least 1; `never` below
  /// size_min_bytes and where C <= V.
  [[nodiscard]] std::uint32_t threshold(std::uint32_t bytes) const noexcept {
    return bytes < size_min_bytes
               ? never
               : thresholds_[static_cast<std::size_t>(std::bit_width(bytes) - 1)];
  }

 private:
  void recompute() noexcept;

  std::array<std::uint32_t, 32> thresholds_{};  ///< [log2 of the size]
  std::array<Costs, 32> costs_{};
  std::uint32_t known_ = 0;  ///< bit i: costs_[i] was set
  std::uint32_t speculation_pct_ = 25;
};

}  // namespace overlap::ring
