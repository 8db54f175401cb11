// The rings that peers have given us: our halves, which we send from.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "protocol/wire.hpp"

#include "btl_ring_busy.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_send.hpp"
#include "registered_memory.hpp"

namespace overlap::ring {

/// Owns Endpoint::out and Endpoint::retired.
///
/// @thread  Guard held
class OutgoingRings {
 public:
  /// All three outlive it.
  OutgoingRings(RegisteredMemory& memory, Sender& sender, BusyEndpoints& busy) noexcept
      : memory_(memory), sender_(sender), busy_(busy) {}
  OutgoingRings(const OutgoingRings&) = delete;
  OutgoingRings& operator=(const OutgoingRings&) = delete;

  /// The peer has given us a ring: make our half of it, or say no.
  void open(Endpoint& endpoint, const ControlBody& body);
  /// The peer does not look at its half any more. Ours stays until the device has read it for the
  /// last time.
  void end(Endpoint& endpoint) noexcept;
  /// Give retired rings back that the device has read for the last time. Their arrival at the peer
  /// is not enough: a device that has missed the acknowledgement reads the memory again.
  void forget_retired(Endpoint& endpoint, bool all) noexcept;
  /// Nothing comes through the ring that the peer has opened; its place is free for another peer as
  /// soon as it learns that.
  void decline(Endpoint& endpoint);

 private:
  RegisteredMemory& memory_;
  Sender& sender_;
  BusyEndpoints& busy_;
  std::uint32_t rings_ = 0;  ///< retired ones too
};

}  // namespace overlap::ring
