// The receiver's half of the protocol: posting, matching, RTRs, cancelling.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cassert>

#include "protocol.hpp"

namespace overlap::speculative {
namespace {

// The index of an RTR has 16 bits; so many RTRs of one envelope are never useful anyway.
constexpr std::uint32_t offers_max = 4096;

constexpr bool rtr_is_out(ReceiveState state) noexcept {
  return state == ReceiveState::offered || state == ReceiveState::revoking;
}

}  // namespace

Arrived* Protocol::post_receive(Communicator& comm, ReceiveOp& op) {
  assert(op.state == ReceiveState::idle);
  op.length_bytes = 0;
  op.arrived_bytes = 0;
  op.data_done = false;
  op.done_parts = 0;
  if (Arrived* message = comm.find_unexpected(op.source, op.tag)) {
    op.found_by_look = just_missed(op, *message);
    take(*message);
    return receive_taken(*message, op);
  }
  op.found_by_look = false;
  comm.post(op);
  op.state = ReceiveState::queued;
  counters_.posted_queue_max = std::max(counters_.posted_queue_max, comm.posted_count);
  if (op.speculate && config_.speculation && op.source != any_source && op.tag != any_tag)
    try_offer(op);
  return nullptr;
}

/// Would an RTR for this receive have crossed the RTS that it finds? Its sender may wait a little
/// for the next one (P1.14).
bool Protocol::just_missed(const ReceiveOp& op, const Arrived& message) const noexcept {
  if (!op.speculate || !config_.speculation || message.kind != Kind::rts ||
      op.source == any_source || op.tag == any_tag || !message.peer->speculates)
    return false;
  const ReceiveEnvelope* envelope = message.peer->receive_envelopes.find(message.tag);
  if (envelope != nullptr && !envelope->may_offer()) return false;
  const std::uint64_t now_ns = message.arrived_ns == 0 ? 0 : host_.now_ns();
  return op.found_by_look ||
         (now_ns != 0 && now_ns - message.arrived_ns <= config_.patience.wait_max_ns);
}

Arrived* Protocol::receive_taken(Arrived& message, ReceiveOp& op) {
  op.arrived_bytes = 0;
  op.data_done = false;
  op.done_parts = 0;
  if (message.kind == Kind::rtr_ack) return receive_collected(message, op);
  if (message.kind == Kind::rts) {
    ++counters_.late_receives;
    match_rts(op, message);
    Arrived::destroy(&message);
    return nullptr;
  }
  ReceiveMachine::set_matched(op, *message.peer, message.tag, message.length_bytes);
  if (message.kind == Kind::eager_sync)
    outbox_.emit_targeted(*message.peer, Kind::sync_ack, 0, message.send).receive = &op;
  return &message;
}

Arrived* Protocol::probe(Communicator& comm, std::int32_t source, std::int32_t tag) noexcept {
  return comm.find_unexpected(source, tag);
}

void Protocol::take(Arrived& message) {
  message.peer->comm->take(message);
  if (message.kind == Kind::rts) acknowledge_match(message, message.answered);
}

/// A posted receive gets an eager message: it leaves its queue; the caller delivers and completes.
void Protocol::match_eager(ReceiveOp& op, Peer& peer, std::int32_t tag,
                           std::uint64_t length_bytes) {
  peer.comm->unpost(op);
  if (rtr_is_out(op.state)) [[unlikely]]
    note_misprediction(peer, tag);
  if (op.handle != 0) [[unlikely]] {
    if (rtr_outlives(op)) {
      leave_ghost(op);
    } else {
      machine_.close(op);
    }
  }
  op.state = ReceiveState::idle;
  ReceiveMachine::set_matched(op, peer, tag, length_bytes);
}

/// A receive, already out of its queue, gets an RTS.
void Protocol::match_rts(ReceiveOp& op, Arrived& rts) {
  ReceiveMachine::set_matched(op, *rts.peer, rts.tag, rts.length_bytes);
  op.send = rts.send;
  op.source_memory = rts.source_memory;
  if (op.take_bytes() == 0) {
    machine_.advance(op, ReceiveEvent::rts_nothing);
    return;
  }
  machine_.open(op);
  op.coming_bytes = op.take_bytes();
  machine_.advance(op, ReceiveEvent::rts);
}

void Protocol::acknowledge_match(const Arrived& message, bool rtr_out) {
  if (!config_.speculation || !message.peer->speculates ||
      !hazard_->wants_rts_ack(message.flags, rtr_out))
    return;
  RtsAckHeader ack{};
  ack.head = Outbox::reverse_head(Kind::rts_ack, *message.peer, message.tag);
  ack.head.flags = message.flags & flag::hazard_stop;
  ack.hazard_epoch = message.hazard_epoch;
  ++counters_.rts_ack_sent;
  counters_.extra_control_bytes += sizeof ack;
  outbox_.emit_control(*message.peer, ack);
}

void Protocol::note_misprediction(Peer& peer, std::int32_t tag) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag);
  if (envelope != nullptr) envelope->adaptation.rts_came(true, true);  // a probe has failed
  if (envelope == nullptr || ++envelope->mispredictions < config_.mispredictions_max ||
      envelope->muted)
    return;
  envelope->muted = true;
  ++counters_.mutes;
}

// RTRs ----------------------------------------------------------------------------------

bool Protocol::may_offer(const ReceiveOp& op, const ReceiveEnvelope& envelope) const noexcept {
  return op.speculate && op.capacity_bytes >= config_.rtr_min_bytes &&
         op.peer->bound != unbound_incarnation && !op.peer->ended && op.peer->speculates &&
         envelope.may_offer();
}

/// Send an RTR for a queued receive of an exact envelope, unless one of the rules speaks against it
/// (P1.7, P1.9, P1.11).
void Protocol::try_offer(ReceiveOp& op) {
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
  machine_.open(op);
  op.names_memory = true;
  machine_.advance(op, ReceiveEvent::offer);
}

/// The sender uses none of the envelope's RTRs any more: their receives are as if they had sent
/// none.
void Protocol::take_back_offers(Peer& peer, std::int32_t tag) {
  for (ReceiveOp* op = peer.posted.find(tag); op != nullptr; op = peer.posted.find_after(*op)) {
    if (op->state == ReceiveState::offered) machine_.advance(*op, ReceiveEvent::take_back);
  }
  if (ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag))
    envelope->adaptation.taken_back();
}

/// Send the RTRs that receives of this envelope could not send when they were posted. A program
/// that always has a receive posted would otherwise never speculate again after one stop, because
/// the first receive without RTR holds all later ones back.
///
/// @param restarts  false: only look at the first receive, which a wildcard may have held back
void Protocol::offer_waiting(Peer& peer, std::int32_t tag, bool restarts) {
  ReceiveOp* op = peer.posted.find(tag);
  if (op == nullptr || (!restarts && op->state != ReceiveState::queued)) return;
  for (; op != nullptr; op = peer.posted.find_after(*op)) {
    if (op->state == ReceiveState::queued) try_offer(*op);
    if (op->state != ReceiveState::offered) return;
  }
}

}  // namespace overlap::speculative
