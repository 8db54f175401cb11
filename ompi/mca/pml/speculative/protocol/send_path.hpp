// Which way a message goes to its BTL: chosen once per message, from facts alone.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::speculative {

enum class SendPath : std::uint8_t {
  inject,      ///< the BTL copies header and payload in one call (btl_sendi)
  copy,        ///< into a descriptor of the BTL
  zero_copy,   ///< the BTL sends from the user's buffer; the request lives until then (P3.2)
  wait,        ///< no room: the request waits with its data, nothing overtakes it
  rendezvous,  ///< RTS or RTR (P1.1)
};

/// What a message, its endpoint and its BTL are like.
struct SendFacts {
  std::uint64_t bytes = 0;        ///< payload
  std::uint64_t eager_bytes = 0;  ///< largest payload that goes eagerly
  std::uint64_t zero_copy_bytes =
      0;  ///< smallest that the BTL may want to send in zero-copy; 0: none
  bool can_inject = false;
  bool plain = false;    ///< contiguous: the BTL could read it where it lies
  bool crowded = false;  ///< others wait for room already
  /// Where btl_sendi refuses, it has no room; a message that is copied would not wait with us.
  bool refuses_for_room = false;
};

/// The first path to try.
///
///   bytes > eager_bytes              rendezvous
///   crowded                          wait
///   can_inject                       inject
///   plain, bytes >= zero_copy_bytes  zero_copy
///   otherwise                        copy
[[nodiscard]] constexpr SendPath choose_path(const SendFacts& facts) noexcept {
  if (facts.bytes > facts.eager_bytes) return SendPath::rendezvous;
  if (facts.crowded) return SendPath::wait;
  if (facts.can_inject) return SendPath::inject;
  const bool lend = facts.plain && facts.zero_copy_bytes != 0 && facts.bytes > 0 &&
                    facts.bytes >= facts.zero_copy_bytes;
  return lend ? SendPath::zero_copy : SendPath::copy;
}

/// The path to try when the BTL has refused one: inject -> zero_copy or copy -> wait; where it has
/// refused for want of room inject -> wait.
[[nodiscard]] constexpr SendPath after_refusal(SendPath refused, SendFacts facts) noexcept {
  switch (refused) {
    case SendPath::inject:
      if (facts.refuses_for_room) return SendPath::wait;
      facts.can_inject = false;
      return choose_path(facts);
    case SendPath::zero_copy: return SendPath::copy;
    case SendPath::copy:
    case SendPath::wait: return SendPath::wait;
    case SendPath::rendezvous: return SendPath::rendezvous;
  }
  return SendPath::wait;
}

}  // namespace overlap::speculative
