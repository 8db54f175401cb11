// When a sender pauses, so that two processes that exchange messages work side by side.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace overlap {

/// Whether this process sends and receives by turns, or sends several messages in a row.
///
/// @thread  progress lock held
class SendRuns {
 public:
  void note_receive() noexcept { received_ = true; }
  /// For each send that ExchangePace concerns. @returns  how many so far have followed another one
  /// without a receive in between
  std::uint32_t note_send() noexcept {
    if (!std::exchange(received_, false)) ++in_a_row_;
    return in_a_row_;
  }

 private:
  bool received_ = true;
  std::uint32_t in_a_row_ = 0;
};

/// Pauses behind sends to one process through shared memory.
///
/// Two processes that send to each other and then wait for each other's message fall into turns
/// where a message takes its receiver longer than the next one takes its sender. One finds two
/// messages in one poll, the second ahead of its receive. It has done with that round before it
/// begins, sends two messages in a row, and the other finds both in one poll. So each does two
/// rounds at a time, while the other waits. A pause behind the send that follows such a message
/// lets the other come back to its receive first.
///
/// Only messages ahead of their receives in quick succession count: a process that computes in
/// between loses nothing by turns. Where the next message is ahead again, or the process sends
/// another one before it receives, the pause has not helped, and the processes do something else:
/// the next 1, 3, 7 .. 1023 times there is none.
///
/// @thread  progress lock held
class ExchangePace {
 public:
  /// Smaller messages take their receiver little: nothing is returned to their sender. Larger ones
  /// are read, or worth more than a pause.
  static constexpr std::uint64_t message_min_bytes = 1000;
  static constexpr std::uint64_t message_end_bytes = 4096;
  [[nodiscard]] static constexpr bool concerns(std::uint64_t bytes) noexcept {
    return bytes >= message_min_bytes && bytes < message_end_bytes;
  }
  /// About what the receiver takes for a message and to send its own next one, measured where a
  /// message takes 0.2 us from one process to the other.
  [[nodiscard]] static constexpr std::uint64_t pause_ns(std::uint64_t bytes) noexcept {
    return 300 + bytes / 5;
  }

  /// A message of the process has come before its receive.
  /// @param now_ns  the time, asked for where it matters
  template <class Clock>
  void note_ahead(Clock&& now_ns) noexcept {
    ahead_ = left_skips_ > 0;
    if (ahead_) return;
    const std::uint64_t ns = now_ns();
    ahead_ = ns - std::exchange(ahead_ns_, ns) <= succession_ns;
  }
  /// For each send to it of a size that is concerned.
  /// @param in_a_row  sends of this process that have followed others (SendRuns), with this one
  /// @param now_ns    as above
  /// @returns         whether its caller pauses behind it
  template <class Clock>
  [[nodiscard]] bool pauses_behind_send(std::uint32_t in_a_row, Clock&& now_ns) noexcept {
    const bool ahead = std::exchange(ahead_, false);
    if (std::exchange(paused_, false)) {
      const bool helped = !ahead && in_a_row == in_a_row_;
      left_skips_ = skips_ = helped ? 0 : std::min(2 * skips_ + 1, skips_max);
    }
    if (!ahead) return false;
    if (left_skips_ > 0) {
      --left_skips_;
      return false;
    }
    if (now_ns() - ahead_ns_ > succession_ns) return false;
    in_a_row_ = in_a_row;
    return paused_ = true;
  }

 private:
  static constexpr std::uint64_t succession_ns = 10'000;
  static constexpr int skips_max = 1023;

  std::uint64_t ahead_ns_ = 0;
  bool ahead_ = false;
  bool paused_ = false;         ///< behind the last send
  std::uint32_t in_a_row_ = 0;  ///< then
  int skips_ = 0;
  int left_skips_ = 0;
};

}  // namespace overlap
