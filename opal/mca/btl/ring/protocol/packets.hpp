// Do both ends of a connection send packets of one size?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>

namespace overlap::ring {

/// What limits the packets of one end.
struct PacketLimit {
  std::uint32_t port_bytes = 0;     ///< of its port; 0: a device that has no packets
  std::uint32_t allowed_bytes = 0;  ///< by the user (btl_ring_verbs_mtu); 0: what the port can
};

/// A path has what both ports can; an end that the user allows less takes that, and the other one
/// does not hear of it.
[[nodiscard]] constexpr bool have_one_size(const PacketLimit& one,
                                           const PacketLimit& other) noexcept {
  const std::uint32_t path = std::min(one.port_bytes, other.port_bytes);
  const auto size = [path](const PacketLimit& end) {
    return end.allowed_bytes == 0 ? path : std::min(path, end.allowed_bytes);
  };
  return size(one) == size(other);
}

}  // namespace overlap::ring
