// When a receiver sends RTRs.
// SPDX-License-Identifier: BSD-3-Clause
#include "offers.hpp"

namespace overlap::speculative {
namespace {

// The index of an RTR has 16 bits; so many RTRs of one envelope are never useful anyway.
constexpr std::uint32_t offers_max = 4096;

}  // namespace

bool Offers::may_offer(const ReceiveOp& op, const ReceiveEnvelope& envelope) const noexcept {
  return op.speculate && op.capacity_bytes >= config_.rtr_min_bytes &&
         op.peer->bound != unbound_incarnation && !op.peer->ended && op.peer->speculates &&
         envelope.may_offer();
}

void Offers::try_offer(ReceiveOp& op) {
  Peer& peer = *op.peer;
  ReceiveEnvelope* envelope = peer.receive_envelopes.get(op.tag, config_.envelopes);
  if (envelope == nullptr || !may_offer(op, *envelope)) return;
  // A receive for several envelopes may take the message first, wherever it stands in the queue
  // before this one.
  if (peer.comm->wildcard_matches(peer, op.tag)) return;
  ReceiveOp* before = peer.posted.find_before(op);
  if (before != nullptr && before->state != ReceiveState::offered) return;
  op.position = before == nullptr ? 0 : before->position + 1;
  const std::uint32_t index = op.position - peer.posted.find(op.tag)->position;
  if (index >= offers_max) return;
  envelope->adaptation.offered();
  envelope->memory_free.offered(op.order);
  machine_.open(op);
  op.names_memory = true;
  machine_.advance(op, ReceiveEvent::offer);
}

void Offers::take_back(Peer& peer, std::int32_t tag) {
  for (ReceiveOp* op = peer.posted.find(tag); op != nullptr; op = peer.posted.find_after(*op)) {
    if (op->state == ReceiveState::offered) machine_.advance(*op, ReceiveEvent::take_back);
  }
  if (ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag))
    envelope->adaptation.taken_back();
}

void Offers::offer_waiting(Peer& peer, std::int32_t tag, bool restarts) {
  ReceiveOp* op = peer.posted.find(tag);
  if (op == nullptr || (!restarts && op->state != ReceiveState::queued)) return;
  for (; op != nullptr; op = peer.posted.find_after(*op)) {
    if (op->state == ReceiveState::queued) try_offer(*op);
    if (op->state != ReceiveState::offered) return;
  }
}

bool Offers::rts_came(Peer& peer, const RtsHeader& rts, const ReceiveOp* met) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.get(rts.head.tag, config_.envelopes);
  if (envelope == nullptr) return false;
  const bool before = envelope->may_offer();
  hazard_.rts_arrived(*envelope, rts.head.flags);
  envelope->adaptation.rts_came(met != nullptr && met->speculate,
                                met != nullptr && met->state != ReceiveState::queued);
  if ((rts.head.flags & flag::adapt_stop) != 0) envelope->adaptation.stop();
  if ((rts.head.flags & flag::adapt_resume) != 0) envelope->adaptation.resume();
  envelope->muted = false;
  envelope->mispredictions = 0;
  if ((rts.head.flags & flag::hazard_stop) != 0) {
    take_back(peer, rts.head.tag);
    envelope->orphaned_rtrs = 0;  // the sender uses none, and counts none
  }
  return !before && envelope->may_offer();
}

bool Offers::used(Peer& peer, std::int32_t tag) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag);
  if (envelope == nullptr) return false;
  const bool stopped = envelope->adaptation.stopped;
  envelope->mispredictions = 0;
  (void)envelope->adaptation.used();
  return stopped;
}

void Offers::mispredicted(Peer& peer, std::int32_t tag) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag);
  if (envelope != nullptr) envelope->adaptation.rts_came(true, true);  // a probe has failed
  if (envelope == nullptr || ++envelope->mispredictions < config_.mispredictions_max ||
      envelope->muted)
    return;
  envelope->muted = true;
  ++counters_.mutes;
}

bool Offers::must_acknowledge(const Arrived& rts, bool rtr_out) const noexcept {
  return config_.speculation && rts.peer->speculates && hazard_.wants_rts_ack(rts.flags, rtr_out);
}

void Offers::acknowledge_match(const Arrived& rts, bool rtr_out) {
  if (!must_acknowledge(rts, rtr_out)) return;
  RtsAckHeader ack{};
  ack.head = Outbox::reverse_head(Kind::rts_ack, *rts.peer, rts.tag);
  ack.head.flags = rts.flags & flag::hazard_stop;
  ack.hazard_epoch = rts.hazard_epoch;
  ++counters_.rts_ack_sent;
  counters_.extra_control_bytes += sizeof ack;
  outbox_.emit_control(*rts.peer, ack);
}

}  // namespace overlap::speculative
