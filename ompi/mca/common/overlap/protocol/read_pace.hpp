// When a process may be asked to read a message that could be sent to it at once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap {

/// What a process has done with the messages that it was to read.
///
/// Such a message keeps its sender until its receiver comes to MPI. Where that took long one of the
/// two computes (a sender that does sees late that it has ended): the next messages are pushed,
/// twice as many each time it is late again, and half as many only when it has come in time as
/// often, or for trust_reads in a row: who has computed for a while, or loses its processor now and
/// then, is not pushed to for long behind that.
class ReadPace {
 public:
  static constexpr std::uint16_t pause_min_messages = 8;
  static constexpr std::uint16_t pause_max_messages = 1024;
  /// More than lie between two late ones of a process that really computes, mostly.
  static constexpr std::uint16_t trust_reads = 128;

  /// For each message that could be read, or for several that go one way.
  /// @returns  false: they are to be pushed
  [[nodiscard]] bool may_read(std::uint16_t messages = 1) noexcept {
    if (left_messages_ == 0) return true;
    left_messages_ =
        static_cast<std::uint16_t>(left_messages_ - std::min(left_messages_, messages));
    return false;
  }
  /// Has it ever read one? Who may not needs its sender's help.
  [[nodiscard]] bool has_read() const noexcept { return has_read_; }

  /// A message has been read, or the first one of several that go one way.
  void end(bool late) noexcept {
    has_read_ = true;
    if (late) {
      in_time_ = 0;
      pause_messages_ = static_cast<std::uint16_t>(
          std::clamp<int>(2 * pause_messages_, pause_min_messages, pause_max_messages));
      left_messages_ = pause_messages_;
    } else if (++in_time_ >= std::min(pause_messages_, trust_reads)) {
      in_time_ = 0;
      pause_messages_ /= 2;
    }
  }
  /// It had to be pushed: the process may not read.
  void refuse() noexcept {
    has_read_ = false;
    in_time_ = 0;
    left_messages_ = pause_messages_ = pause_max_messages;
  }

 private:
  bool has_read_ = false;
  std::uint16_t pause_messages_ = 0;
  std::uint16_t left_messages_ = 0;
  std::uint16_t in_time_ = 0;
};

}  // namespace overlap
