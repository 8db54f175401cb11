// After how many uses does it pay to register a buffer? (P3.3)
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace overlap::ring {

/// R, C and V of one message size, as measured on this machine.
struct Costs {
  std::uint32_t register_ns;
  std::uint32_t copy_ns;
  std::uint32_t lookup_ns;
};

/// Thresholds by size, ready to be looked up.
/// @source  P3.3; frequent-buffer-eager-2010 section 3.2, inequality (3)
class CostModel {
 public:
  static constexpr std::uint32_t size_min_bytes = 128;
  static constexpr std::uint32_t never = UINT32_MAX;

  CostModel() noexcept { thresholds_.fill(never); }

  /// Sizes between two powers of two have the threshold of the smaller one, sizes above the largest that of the largest.
  /// @param bytes  a power of two; below size_min_bytes: ignored
  void set(std::uint32_t bytes, Costs costs) noexcept;
  /// Register at this part of the uses that pay for the registration, in the hope of more.
  void set_speculation(std::uint32_t percent) noexcept;

  /// Uses before registering: ceil(R / (C - V) * percent / 100), at least 1; `never` below size_min_bytes and where C <= V.
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
