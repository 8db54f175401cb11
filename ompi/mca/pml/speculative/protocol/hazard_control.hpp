// Hazard control: which RTR is for which send. Two policies behind one interface
// (docs/design/hazard-control.md).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "communicator.hpp"
#include "counters.hpp"
#include "headers.hpp"

namespace overlap::speculative {

enum class HazardPolicy : std::uint8_t {
  envelope_sequence,  ///< an RTR names the message it is for
  eager_flag,         ///< the paper's: counts, Eager-flag, stop-RTR and resume-RTR (P1.6 to P1.9)
};

/// What a rendezvous send does.
struct Start {
  bool use_rtr = false;
  KeptRtr rtr;              ///< when use_rtr
  std::uint8_t flags = 0;   ///< of the RTS otherwise
  std::uint16_t epoch = 0;  ///< hazard_epoch of the RTS
};

/// The sender's half decides over RTRs; the receiver's half over acknowledgements. All state but
/// the number of RTRs kept is in the envelopes.
class HazardControl {
 public:
  virtual ~HazardControl() = default;

  // At the sender. Sequence numbers are already taken: `sequence` is the one of the send in
  // question.
  /// An eager message of this envelope goes out. Called only while peer.watch_eager.
  virtual void eager_sent(Peer& peer, std::int32_t tag) = 0;
  /// A rendezvous message goes out: with an RTR or by RTS.
  virtual Start rendezvous_starts(Peer& peer, SendEnvelope& envelope, const SendOp& op) = 0;
  /// @param memory  what the RTR describes, key included
  virtual void rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                           const RemoteMemory& memory) = 0;
  virtual void rts_ack_arrived(Peer& peer, SendEnvelope& envelope, const RtsAckHeader& ack) = 0;
  /// A communicator goes, with every RTR kept for it.
  void forget(std::size_t rtrs) noexcept { kept_ -= rtrs; }
  /// The receiver takes its RTRs back.
  void revoke_arrived(Peer& peer, SendEnvelope& envelope) { drop_kept(peer, envelope); }

  // At the receiver.
  /// An RTS has arrived, in order, before it is matched.
  virtual void rts_arrived(ReceiveEnvelope& envelope, std::uint8_t flags) = 0;
  /// Does the match of this RTS ask for an RTS-ACK? @param rtr_out  the receive has sent an RTR
  [[nodiscard]] virtual bool wants_rts_ack(std::uint8_t rts_flags, bool rtr_out) const = 0;
  /// Does every eager send concern this policy (and so peer.watch_eager stay set)?
  [[nodiscard]] virtual bool watches_every_eager() const = 0;

 protected:
  HazardControl(Counters& counters, EnvelopeBound bound) : counters_(counters), bound_(bound) {}
  /// An empty message has nothing to write, and would leave a write behind that nobody waits for:
  /// it goes by RTS. So does a synchronous one where the RTR names no memory: its receive may have
  /// been cancelled, and the message not be matched when the last fragment has left.
  [[nodiscard]] static bool fits(const KeptRtr& rtr, const SendOp& op) noexcept {
    return op.length_bytes > 0 && op.length_bytes <= rtr.capacity_bytes &&
           (rtr.memory.accessible || !op.synchronous);
  }
  /// @returns  false when the process keeps as many as it may: it is dropped
  [[nodiscard]] bool keep(Peer& peer, SendEnvelope& envelope, const KeptRtr& rtr);
  void drop_front(Peer& peer, SendEnvelope& envelope, bool wasted);
  void drop_kept(Peer& peer, SendEnvelope& envelope);

  Counters& counters_;
  EnvelopeBound bound_;

 private:
  std::size_t kept_ = 0;
};

/// @param bound  of each peer's envelope tables
[[nodiscard]] std::unique_ptr<HazardControl> make_hazard_control(HazardPolicy policy,
                                                                 Counters& counters,
                                                                 EnvelopeBound bound);

}  // namespace overlap::speculative
