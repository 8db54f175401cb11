// When an event loop is turned that is not known to bring messages.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

namespace overlap {

/// Turns of an event loop beside turns of a poll loop, for what only a new connection can bring. A
/// turn of the event loop is a system call, and a look at the clock takes as long as a turn of the
/// poll loop.
class EventPace {
 public:
  /// While messages come another way: Open MPI's period.
  static constexpr std::uint64_t busy_period_ns = 10'000'000;
  /// While none do: a connection takes several turns to be made.
  static constexpr std::uint64_t quiet_period_ns = 100'000;
  static constexpr std::uint32_t turns_per_look = 16;
  /// Where there is so much time between turns, on the average of sixteen, each has a look.
  static constexpr std::uint64_t seldom_period_ns = 50'000;

  /// Does this turn ask is_due()? @param turn  of the poll loop; wraps
  [[nodiscard]] bool looks_at_clock(std::uint32_t turn) const noexcept {
    return turns_are_seldom_ || turn % turns_per_look == 0;
  }
  /// @param quiet  have the last turns brought nothing, or does the caller decide by this one?
  [[nodiscard]] bool is_due(std::uint64_t now_ns, std::uint32_t turn, bool quiet) noexcept {
    if (turn % turns_per_look == 0) note_pace(now_ns, turn);
    if (now_ns - turned_ns_ < (quiet ? quiet_period_ns : busy_period_ns)) return false;
    turned_ns_ = now_ns;
    return true;
  }

 private:
  /// On the average: a call that finds nothing takes two turns in a row, and others follow it.
  void note_pace(std::uint64_t now_ns, std::uint32_t turn) noexcept {
    const std::uint32_t turns = turn - std::exchange(look_turn_, turn);
    turns_are_seldom_ = now_ns - std::exchange(look_ns_, now_ns) > turns * seldom_period_ns;
  }

  bool turns_are_seldom_ = true;
  std::uint32_t look_turn_ = 0;
  std::uint64_t look_ns_ = 0;
  std::uint64_t turned_ns_ = 0;
};

}  // namespace overlap
