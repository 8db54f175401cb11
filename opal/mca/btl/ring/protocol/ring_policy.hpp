// May a peer be given a ring? What the arrival of its writes allows, and what the user wants.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

/// The tunable `rings`.
enum class RingPolicy : std::uint8_t { automatic, force, off };

/// Is the last byte of a write known to arrive last? The tail flag stands there.
enum class TailOrder : std::uint8_t { guaranteed, assumed_in_packet, unknown };

///   tail \ policy        automatic              force   off
///   guaranteed           yes                    yes     no
///   assumed_in_packet    slots of one packet    yes     no
///   unknown              no                     yes     no
[[nodiscard]] constexpr bool may_open_ring(RingPolicy policy, TailOrder tail,
                                           std::uint32_t slot_bytes,
                                           std::uint32_t packet_bytes) noexcept {
  if (policy != RingPolicy::automatic) return policy == RingPolicy::force;
  switch (tail) {
    case TailOrder::guaranteed: return true;
    case TailOrder::assumed_in_packet: return slot_bytes <= packet_bytes;
    case TailOrder::unknown: return false;
  }
  return false;
}

}  // namespace overlap::ring
