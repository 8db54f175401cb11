// Numbers that start again: of collectives, of completions, of a queue's entries.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::coll_mq {

/// A count of so many bits. Two compare right while they are less than half the range apart.
template <unsigned bits>
class Counter {
  static_assert(bits >= 2 && bits <= 32);

 public:
  static constexpr std::uint32_t mask = static_cast<std::uint32_t>((std::uint64_t{1} << bits) - 1);

  constexpr Counter() = default;
  constexpr explicit Counter(std::uint32_t value) noexcept : value_(value & mask) {}

  [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
  [[nodiscard]] constexpr Counter operator+(std::uint32_t steps) const noexcept {
    return Counter(value_ + steps);
  }
  constexpr Counter& operator++() noexcept { return *this = *this + 1; }
  /// How far this one is ahead of the other; negative: behind.
  [[nodiscard]] constexpr std::int32_t operator-(Counter other) const noexcept {
    const std::uint32_t distance = (value_ - other.value_) & mask;
    return distance > mask / 2 ? static_cast<std::int32_t>(distance | ~mask)
                               : static_cast<std::int32_t>(distance);
  }
  [[nodiscard]] constexpr bool operator==(const Counter&) const noexcept = default;

 private:
  std::uint32_t value_ = 0;
};

using Sequence = Counter<24>;         ///< of a collective in its stream
using CompletionIndex = Counter<24>;  ///< of a completion queue
using EntryIndex = Counter<16>;       ///< of a work queue

}  // namespace overlap::coll_mq
