// Waiting a little for an RTR that usually crosses: when it pays and how long (P1.14).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::speculative {

struct PatienceRules {
  bool enabled = true;
  std::uint64_t wait_max_ns = 50000;  ///< of one send
  std::uint32_t crossings_min = 2;    ///< before the first attempt
};

/// What a sender has learnt of one envelope.
///
///   RTR came after its message had gone, or would have -> one more crossing; enough of them ->
///   wait, at first as long as is allowed, then twice as long as it has taken waited in vain ->
///   next attempt after twice as many crossings as last time kept RTR used without waiting ->
///   nothing: in an exchange the sides are late in turns
struct Patience {
  static constexpr std::uint32_t crossings_max = 1024;

  std::uint32_t crossings = 0;
  std::uint32_t needed = 0;   ///< crossings before the next attempt; 0: the rules' minimum
  std::uint32_t took_ns = 0;  ///< moving average of the waits that ended in time

  void crossed() noexcept {
    if (crossings < crossings_max) ++crossings;
  }
  void came(std::uint64_t waited_ns) noexcept;
  void in_vain(const PatienceRules& rules) noexcept;
  /// How long to wait for the RTR of a message of `length_bytes`. @returns  0: not at all
  [[nodiscard]] std::uint64_t wait_ns(const PatienceRules& rules,
                                      std::uint64_t length_bytes) const noexcept;
};

}  // namespace overlap::speculative
