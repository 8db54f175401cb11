// When a receiver sends RTRs, and what it learns of those that it has sent.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "communicator.hpp"
#include "config.hpp"
#include "counters.hpp"
#include "hazard_control.hpp"
#include "headers.hpp"
#include "operations.hpp"
#include "outbox.hpp"
#include "receive_machine.hpp"

namespace overlap::speculative {

/// The offers of a process: its receives with an RTR out. What decides over them is in their
/// envelopes.
class Offers {
 public:
  /// The arguments outlive the object.
  Offers(const Config& config, Counters& counters, HazardControl& hazard, Outbox& outbox,
         ReceiveMachine& machine)
      : config_(config), counters_(counters), hazard_(hazard), outbox_(outbox), machine_(machine) {}

  /// Send an RTR for a queued receive of an exact envelope, unless one of the rules speaks against
  /// it (P1.7, P1.9, P1.11).
  void try_offer(ReceiveOp& op);
  /// Send the RTRs that receives of this envelope could not send when they were posted. A program
  /// that always has a receive posted would otherwise never speculate again after one stop, because
  /// the first receive without RTR holds all later ones back.
  ///
  /// @param restarts  false: only look at the first receive, which a wildcard may have held back
  void offer_waiting(Peer& peer, std::int32_t tag, bool restarts);
  /// The sender uses none of the envelope's RTRs any more: their receives are as if they had sent
  /// none.
  void take_back(Peer& peer, std::int32_t tag);

  /// An RTS has come, before it is matched: what does it say about its envelope?
  /// @param met  the receive that it matches, or nullptr
  /// @returns  true when RTRs may be sent from now on and could not before
  [[nodiscard]] bool rts_came(Peer& peer, const RtsHeader& rts, const ReceiveOp* met);
  /// An RTR of the envelope was used. @returns  true when it was a probe of a stopped envelope
  [[nodiscard]] bool used(Peer& peer, std::int32_t tag);
  /// An eager message has met a receive with an RTR out.
  void mispredicted(Peer& peer, std::int32_t tag);
  /// Must the match of an RTS be acknowledged (P1.6)?
  [[nodiscard]] bool must_acknowledge(const Arrived& rts, bool rtr_out) const noexcept;
  /// An RTS is matched: send the RTS-ACK that its sender may count on.
  void acknowledge_match(const Arrived& rts, bool rtr_out);

 private:
  [[nodiscard]] bool may_offer(const ReceiveOp& op, const ReceiveEnvelope& envelope) const noexcept;

  const Config& config_;
  Counters& counters_;
  HazardControl& hazard_;
  Outbox& outbox_;
  ReceiveMachine& machine_;
};

}  // namespace overlap::speculative
