// Hazard control by numbers: RTR `index` counted from forward message `base_sequence` on is for
// exactly one message of its envelope.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hazard_control.hpp"

namespace overlap::speculative {

/// A receive that sends an RTR knows which message it will get: all forward messages before
/// `base_sequence` have reached the receiver and are matched as far as they are of this envelope,
/// and `index` receives of the same envelope stand before it. The sender counts, in its ring of
/// sent tags, how many messages of the envelope it has sent from `base_sequence` on: an RTR for one
/// of those is late, the others are kept with the number of the send they are for.
class EnvelopeSequence final : public HazardControl {
 public:
  EnvelopeSequence(Counters& counters, EnvelopeBound bound) : HazardControl(counters, bound) {}

  void eager_sent(Peer& peer, std::int32_t tag) override;
  Start rendezvous_starts(Peer& peer, SendEnvelope& envelope, const SendOp& op) override;
  void rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                   const RemoteMemory& memory) override;
  void rts_ack_arrived(Peer&, SendEnvelope&, const RtsAckHeader&) override {}
  void rts_arrived(ReceiveEnvelope&, std::uint8_t) override {}
  [[nodiscard]] bool wants_rts_ack(std::uint8_t, bool) const override { return false; }
  [[nodiscard]] bool watches_every_eager() const override { return false; }
};

}  // namespace overlap::speculative
