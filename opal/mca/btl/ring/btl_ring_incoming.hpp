// The rings that peers send through: who gets one, how one is opened and how it ends (P2.6, P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "protocol/polling_set.hpp"
#include "protocol/stream.hpp"

#include "btl_ring_busy.hpp"
#include "btl_ring_connect.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_peers.hpp"
#include "btl_ring_send.hpp"
#include "btl_ring_upper.hpp"
#include "registered_memory.hpp"
#include "segment.hpp"

namespace overlap::ring {

/// What rings take; all outlive them.
struct RingParts {
  RegisteredMemory& memory;
  Segment& segment;
  Peers& peers;
  UpperLayer& upper;
  Connector& connector;
  BusyEndpoints& busy;
  Sender& sender;
};

/// Owns Endpoint::in, and the polling set.
///
/// @thread  Guard held
class IncomingRings {
 public:
  explicit IncomingRings(const RingParts& parts);
  IncomingRings(const IncomingRings&) = delete;
  IncomingRings& operator=(const IncomingRings&) = delete;

  /// Visit those in whose rings something may lie.
  /// @param visit  visit(endpoint) -> number of messages taken; must not throw
  /// @returns  messages taken
  template <class Visit>
  std::uint32_t for_each(Visit&& visit) {
    return polling_.for_each([&](std::uint32_t number) { return visit(parts_.peers.at(number)); });
  }

  /// A message has come from this peer: shall it get a ring, and which one has to leave for it?
  void note_traffic(Endpoint& endpoint, Channel channel);
  /// The peer has no use for the ring that we have offered.
  void on_declined(Endpoint& endpoint);
  /// The sender has put its last message into our half, and we have taken it. A callback that is
  /// still at one of its slots ends it later.
  void end(Endpoint& endpoint) noexcept;
  /// The same, whatever is in it. Needs Endpoint::in.
  void close(Endpoint& endpoint) noexcept;

 private:
  [[nodiscard]] bool try_open(Endpoint& endpoint);
  [[nodiscard]] static bool may_open(Endpoint& endpoint);

  RingParts parts_;
  PollingSet polling_;
};

}  // namespace overlap::ring
