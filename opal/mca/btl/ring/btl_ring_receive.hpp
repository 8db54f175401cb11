// Messages in: what comes through rings and the channel is put into one order (P2.2, P2.5).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "protocol/stream.hpp"
#include "protocol/wire.hpp"

#include "btl_ring_busy.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_fault.hpp"
#include "btl_ring_incoming.hpp"
#include "btl_ring_outgoing.hpp"
#include "btl_ring_upper.hpp"
#include "receive_buffers.hpp"

namespace overlap::ring {

/// What receiving takes; all outlive the receiver.
struct ReceiveParts {
  UpperLayer& upper;
  ReceiveBuffers& buffers;
  BusyEndpoints& busy;
  IncomingRings& in;
  OutgoingRings& out;
};

/// Hands messages to the upper layer in order, and control messages to the rings. The only one that
/// touches Endpoint::held while the endpoint is used.
///
/// @thread  Guard held
class Receiver {
 public:
  /// @param slot_payload_bytes, channel_payload_bytes  of a message, at most
  Receiver(const ReceiveParts& parts, std::uint32_t slot_payload_bytes,
           std::uint32_t channel_payload_bytes) noexcept
      : parts_(parts),
        slot_payload_bytes_(slot_payload_bytes),
        channel_payload_bytes_(channel_payload_bytes) {}
  Receiver(const Receiver&) = delete;
  Receiver& operator=(const Receiver&) = delete;

  /// @returns  messages taken
  int poll_rings() {
    return static_cast<int>(parts_.in.for_each([this](Endpoint& endpoint) -> std::uint32_t {
      try {
        return static_cast<std::uint32_t>(take_from_ring(endpoint));
      } catch (...) {
        refuse_to_go_on();
      }
    }));
  }
  int take_from_ring(Endpoint& endpoint);
  /// @param bytes  as the completion says
  void on_channel_message(Endpoint& endpoint, std::uint32_t buffer, std::uint32_t bytes);

 private:
  void accept(Endpoint& endpoint, const MessageHeader& header, Channel channel);
  void deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload);
  void take_held(Endpoint& endpoint);
  void handle_control(Endpoint& endpoint, const std::byte* payload, std::uint32_t bytes);

  ReceiveParts parts_;
  std::uint32_t slot_payload_bytes_;
  std::uint32_t channel_payload_bytes_;
};

}  // namespace overlap::ring
