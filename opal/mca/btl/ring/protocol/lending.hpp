// Does it pay to lend a buffer to the adapter instead of copying it? Not to who waits for it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap::ring {

/// Tries lending, and leaves it for a while when most buffers were waited for.
///
/// A lent buffer comes back when the adapter has its acknowledgement, a copied one at once: who
/// waits for it waits a round trip to save a copy. Who computes meanwhile saves the copy. Which of
/// them a sender is shows in how often it has looked before the buffer came back.
///
///   trying --most of 16 waited for--> pausing --so many messages copied--> trying
///      ^------others, pauses are short again------/
/// @source  P3.3, whose cost V leaves the wait out
class Lending {
 public:
  static constexpr std::uint32_t sample = 16;           ///< buffers that decide
  static constexpr std::uint32_t looks_of_waiting = 4;  ///< a computing sender looks once or twice
  static constexpr std::uint32_t pause_first = 1024;    ///< messages
  static constexpr std::uint32_t pause_last = 1U << 20U;

  /// A message could go without a copy. @returns  true: lend it
  [[nodiscard]] bool try_lend() noexcept {
    if (left_ == 0) return true;
    --left_;
    return false;
  }

  /// A lent buffer has come back.
  /// @param looks  for completions since it was lent, which took `away_ns`
  /// @param copy_ns  what a copy would have taken
  void returned(std::uint32_t looks, std::uint64_t away_ns, std::uint64_t copy_ns) noexcept {
    if (left_ > 0) return;  // lent before the pause
    waited_ += looks >= looks_of_waiting && away_ns > copy_ns ? 1 : 0;
    if (++seen_ < sample) return;
    if (waited_ * 2 > sample) {
      left_ = pause_;
      pause_ = std::min(pause_ * 4, pause_last);
    } else {
      pause_ = pause_first;
    }
    seen_ = waited_ = 0;
  }

  [[nodiscard]] bool pausing() const noexcept { return left_ > 0; }

 private:
  std::uint32_t left_ = 0;  ///< messages of the pause
  std::uint32_t pause_ = pause_first;
  std::uint32_t seen_ = 0;
  std::uint32_t waited_ = 0;
};

}  // namespace overlap::ring
