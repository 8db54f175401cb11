// Messages out: through a ring where the peer has given one and has room, else through the
// send/receive channel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstdint>

#include "opal/fabric/fabric.hpp"

#include "protocol/wire.hpp"

#include "btl_ring_busy.hpp"
#include "btl_ring_connect.hpp"
#include "btl_ring_endpoint.hpp"
#include "btl_ring_frequent.hpp"
#include "btl_ring_pieces.hpp"
#include "btl_ring_sent.hpp"
#include "btl_ring_upper.hpp"
#include "peer_buffers.hpp"

namespace overlap::ring {

/// What sending takes; all outlive the sender.
struct SendParts {
  const fabric::Capabilities& able;
  UpperLayer& upper;
  Connector& connector;
  BusyEndpoints& busy;
  SentFragments& sent;
  FrequentBuffers& frequent;
  PeerBuffers& buffers;  ///< of channel_bytes()
  WakeUps<Endpoint>& wake_ups;
};

/// Sends messages of the upper layer and control messages, in order for each peer.
///
/// @thread  Guard held
class Sender {
 public:
  /// @param slot_payload_bytes  of a message that goes through a ring, at most
  Sender(const SendParts& parts, std::uint32_t slot_payload_bytes) noexcept
      : parts_(parts), slot_payload_bytes_(slot_payload_bytes) {}
  Sender(const Sender&) = delete;
  Sender& operator=(const Sender&) = delete;

  [[nodiscard]] static bool can_send(const Endpoint& endpoint) noexcept {
    return endpoint.messages.established() && endpoint.ending.usable();
  }
  /// @param flags  of the descriptor: a message with MCA_BTL_DES_FLAGS_SIGNAL wakes a peer that
  ///               sleeps, by itself or, from a ring, by one that follows (WakeUps)
  /// @returns  false: no connection yet or any more, or no room
  [[nodiscard]] bool try_send(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces,
                              std::uint32_t flags);
  /// Header and tail from the slot, the payload from the user's buffer, in one write (P3.2). Its
  /// completion finishes the fragment. @returns  the same
  [[nodiscard]] bool try_send_in_place(Fragment& fragment);
  [[nodiscard]] bool try_send_control(Endpoint& endpoint, const ControlBody& body,
                                      bool wakes = false);

  /// Send it when there is room, behind those that wait already.
  void queue(Fragment& fragment);
  /// Send what has waited, in order, as far as there is room.
  void flush(Endpoint& endpoint);

 private:
  [[nodiscard]] bool try_post_ring(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                   const Pieces& pieces);
  [[nodiscard]] bool try_post_channel(Endpoint& endpoint, mca_btl_base_tag_t tag,
                                      const Pieces& pieces, bool wakes = false);

  SendParts parts_;
  std::uint32_t slot_payload_bytes_;
};

}  // namespace overlap::ring
