// What copies of messages have taken, by their sizes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/near_least.hpp"

namespace overlap::speculative {

/// Sizes by powers of two: the smallest, ten powers, all above.
class SizeClasses {
 public:
  static constexpr std::size_t count = 12;

  /// @param smallest_width  sizes below two to this power are taken for one
  explicit constexpr SizeClasses(int smallest_width) noexcept : smallest_width_(smallest_width) {}
  [[nodiscard]] constexpr std::size_t of(std::uint64_t bytes) const noexcept {
    const int above = std::bit_width(bytes) - smallest_width_;
    return static_cast<std::size_t>(std::clamp(above, 0, static_cast<int>(count) - 1));
  }

 private:
  int smallest_width_;
};

/// @param ns  of a message of so many bytes; bytes > 0
[[nodiscard]] constexpr float ns_per_kib(std::uint64_t ns, std::uint64_t bytes) noexcept {
  constexpr float kib_bytes = 1024.0F;
  return static_cast<float>(ns) * kib_bytes / static_cast<float>(bytes);
}

/// What this process takes to copy messages out of shared memory. One that sends the same way to
/// processes of its node can tell by it what they take.
class ReceiveCopies {
 public:
  explicit constexpr ReceiveCopies(int smallest_width) noexcept : sizes_(smallest_width) {}

  /// For each copy. @returns  whether it is to be timed: one in four of a class
  [[nodiscard]] bool times_next(std::uint64_t bytes) noexcept {
    return costs_[sizes_.of(bytes)].copies++ % 4 == 0;
  }
  void took(std::uint64_t bytes, std::uint64_t ns) noexcept {
    float& cost = costs_[sizes_.of(bytes)].ns_per_kib;
    const float now = ns_per_kib(ns, bytes);
    cost = cost == 0 ? now : near_least(cost, now);
  }
  /// @returns  0: not known
  [[nodiscard]] std::uint64_t ns(std::uint64_t bytes) const noexcept {
    return static_cast<std::uint64_t>(costs_[sizes_.of(bytes)].ns_per_kib *
                                      static_cast<float>(bytes) / 1024.0F);
  }

 private:
  struct Cost {
    std::uint32_t copies = 0;
    float ns_per_kib = 0;
  };
  SizeClasses sizes_;
  std::array<Cost, SizeClasses::count> costs_{};
};

}  // namespace overlap::speculative
