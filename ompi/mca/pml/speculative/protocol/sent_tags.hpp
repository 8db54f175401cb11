// Tags of the last messages sent to a peer: how many of an envelope went out since a given one,
// without a counter per envelope on the eager path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

namespace overlap::speculative {

inline constexpr std::uint32_t history_messages = 256;
inline constexpr std::int32_t no_message_tag =
    INT32_MIN;  ///< a sequence number that no message has (REVOKE-ACK)

/// Starts to remember when the speculation first asks: most peers never do.
class SentTags {
 public:
  /// Message `sequence` goes out.
  void note(std::uint32_t sequence, std::int32_t tag) noexcept {
    if (ring_ != nullptr) [[unlikely]]
      ring_->tags[sequence % history_messages] = tag;
  }
  /// Remember from the next message on. @param next_sequence  of it
  void start(std::uint32_t next_sequence) {
    if (ring_ != nullptr) return;
    ring_ = std::make_unique<Ring>();
    ring_->first_sequence = next_sequence;
  }
  /// Messages of `tag` in [from, next_sequence). @returns  nothing when not all of them are
  /// remembered
  [[nodiscard]] std::optional<std::uint32_t> count(std::int32_t tag, std::uint32_t from,
                                                   std::uint32_t next_sequence) const noexcept {
    const std::uint32_t sent = next_sequence - from;  // wraps
    if (sent == 0) return 0;
    if (ring_ == nullptr || sent > history_messages || sent > next_sequence - ring_->first_sequence)
      return std::nullopt;
    std::uint32_t found = 0;
    for (std::uint32_t i = 0; i < sent; ++i)
      found += ring_->tags[(from + i) % history_messages] == tag ? 1 : 0;
    return found;
  }

 private:
  struct Ring {
    std::uint32_t first_sequence = 0;
    std::array<std::int32_t, history_messages> tags;
  };
  std::unique_ptr<Ring> ring_;
};

}  // namespace overlap::speculative
