// Hazard control of the paper: acknowledgements, Eager-flag, stop-RTR and resume-RTR (P1.6, P1.8).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "hazard_control.hpp"

namespace overlap::speculative {

/// Nothing in an RTR says which message it is for; the two sides keep in step by counting: every
/// RTS is answered by exactly one RTR (sent before the RTS was seen) or RTS-ACK, so an RTR that
/// arrives while RTSs are unanswered belongs to one of those. An eager message breaks the count,
/// because its receive may have sent an RTR. From then on no RTR of the envelope is used until the
/// receiver has stopped, every RTR under way has arrived, and all are dropped.
///
/// Two things are done otherwise than in the paper: an RTS with stop-RTR is always answered by an
/// RTS-ACK (its DONE does not travel in order with the RTRs here), and an RTS-ACK names the drain
/// it belongs to, so that one from before a drain is not counted after it.
class EagerFlag final : public HazardControl {
 public:
  EagerFlag(Counters& counters, EnvelopeBound bound) : HazardControl(counters, bound) {}

  void eager_sent(Peer& peer, std::int32_t tag) override;
  Start rendezvous_starts(Peer& peer, SendEnvelope& envelope, const SendOp& op) override;
  void rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                   const RemoteMemory& memory) override;
  void rts_ack_arrived(Peer& peer, SendEnvelope& envelope, const RtsAckHeader& ack) override;
  void rts_arrived(ReceiveEnvelope& envelope, std::uint8_t flags) override;
  [[nodiscard]] bool wants_rts_ack(std::uint8_t rts_flags, bool rtr_out) const override;
  [[nodiscard]] bool watches_every_eager() const override { return true; }

 private:
  void waste(const RtrHeader& rtr, const RemoteMemory& memory);
};

}  // namespace overlap::speculative
