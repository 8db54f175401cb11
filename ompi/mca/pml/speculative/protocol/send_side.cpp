// The sender's half of the protocol.
// SPDX-License-Identifier: BSD-3-Clause
#include "send_side.hpp"

#include <cassert>

namespace overlap::speculative {

void SendSide::write_eager_sync_header(EagerSyncHeader& out, SendOp& op) {
  op.handle = sends_.add(op);
  op.awaiting_sync = true;
  write_eager_head(out.head, Kind::eager_sync, *op.peer, op.tag);
  out.send = op.handle;
}

void SendSide::start(SendOp& op, std::uint64_t now_ns) {
  assert(op.state == SendState::idle);
  if (op.peer->defers) decide_deferred(*op.peer);
  if (now_ns != 0 && config_.speculation) {
    deferred_.heard(now_ns);
    // The paper's policy never waits.
    if (config_.hazard_policy == HazardPolicy::envelope_sequence && deferred_.try_put(op)) {
      advance(op, SendEvent::defer);
      return;
    }
  }
  decide(op);
}

void SendSide::expire(std::uint64_t now_ns) {
  deferred_.heard(now_ns);
  while (SendOp* op = deferred_.take_expired()) decide(*op);
}

void SendSide::decide_deferred(const Peer& peer) {
  if (SendOp* op = deferred_.take(peer)) decide(*op);
}

/// A receive has ended or granted what this send's RTS has announced.
void SendSide::note_just_missed(const SendOp& op, std::uint8_t flags) noexcept {
  if ((flags & flag::just_missed) == 0) return;
  if (SendEnvelope* envelope = op.peer->send_envelopes.find(op.tag)) envelope->patience.crossed();
}

void SendSide::decide(SendOp& op) {
  Peer& peer = *op.peer;
  if (config_.speculation) peer.sent_tags.start(peer.next_sequence);
  op.sequence = Outbox::take_sequence(peer, op.tag);
  SendEnvelope* envelope =
      config_.speculation ? peer.send_envelopes.get(op.tag, config_.envelopes) : nullptr;
  if (envelope == nullptr) {
    send_rts(op, Start{}, config_.speculation ? flag::adapt_stop : 0);
    return;
  }
  const Start start = hazard_.rendezvous_starts(peer, *envelope, op);
  if (start.use_rtr) {
    if (note_rtr_used(envelope->adaptation)) ++counters_.adaptation_resumes;
    ++counters_.rtr_used;
    op.receive = start.rtr.receive;
    op.take_bytes = op.length_bytes;
    op.target = start.rtr.memory;
    advance(op, op.target.accessible ? SendEvent::rtr_memory : SendEvent::rtr_push);
    return;
  }
  std::uint8_t adaptation_flags = 0;
  switch (before_rts(config_.adaptation, envelope->adaptation, op.sequence)) {
    case Advice::keep: break;
    case Advice::stop:
      adaptation_flags = flag::adapt_stop;
      ++counters_.adaptation_stops;
      break;
    case Advice::resume:
      adaptation_flags = flag::adapt_resume;
      ++counters_.adaptation_resumes;
      break;
  }
  send_rts(op, start, adaptation_flags);
}

void SendSide::send_rts(SendOp& op, const Start& start, std::uint8_t adaptation_flags) {
  const SendStep next = step(op.state, SendEvent::no_rtr);
  assert(next.legal && next.action == SendAction::send_rts);
  op.state = next.next;
  op.handle = sends_.add(op);
  op.receive = 0;
  RtsHeader rts{};
  rts.head = Outbox::forward_head(Kind::rts, *op.peer, op.tag, op.sequence);
  rts.head.flags = start.flags | adaptation_flags;
  if (op.caller_waits) rts.head.flags |= flag::sender_waits;
  if (op.eager_sized) rts.head.flags |= flag::eager_sized;
  if (op.eager_sized && op.synchronous) rts.head.flags |= flag::synchronous;
  rts.length_bytes = op.length_bytes;
  rts.send = op.handle;
  rts.hazard_epoch = start.epoch;
  ++counters_.rts_sent;
  if (op.eager_sized) ++counters_.rts_eager_sized;
  outbox_.emit_control(*op.peer, rts).send = &op;
}

void SendSide::advance(SendOp& op, SendEvent event) {
  const SendStep next = step(op.state, event);
  assert(next.legal);
  if (!next.legal) return;
  op.state = next.next;
  perform(op, next.action);
}

void SendSide::send_rtr_ack(SendOp& op, std::uint8_t flags) {
  RtrAckHeader ack{};
  ack.head = Outbox::forward_head(Kind::rtr_ack, *op.peer, op.tag, op.sequence);
  ack.head.flags = flags;
  ack.length_bytes = op.length_bytes;
  ack.receive = op.receive;
  ++counters_.rtr_ack_sent;
  counters_.extra_control_bytes += sizeof ack;
  outbox_.emit_control(*op.peer, ack).send = &op;
}

void SendSide::perform(SendOp& op, SendAction action) {
  switch (action) {
    case SendAction::none: break;
    case SendAction::send_rts: break;  // send_rts does it, with what the hazard control decided
    case SendAction::start_write: outbox_.emit(Action::Kind::write).send = &op; break;
    case SendAction::send_rtr_ack: send_rtr_ack(op, 0); break;
    case SendAction::send_rtr_ack_done:
      send_rtr_ack(op, flag::data_done);
      finish(op);
      break;
    case SendAction::send_rtr_ack_and_push:
      send_rtr_ack(op, 0);
      outbox_.emit(Action::Kind::push).send = &op;
      break;
    case SendAction::start_push: outbox_.emit(Action::Kind::push).send = &op; break;
    case SendAction::send_done:
      outbox_.emit_control(*op.peer, done_header(op)).send = &op;
      finish(op);
      break;
    case SendAction::complete: finish(op); break;
    case SendAction::break_off: outbox_.emit(Action::Kind::break_off).send = &op; break;
  }
}

void SendSide::finish(SendOp& op) {
  if (op.handle != 0) sends_.remove(op.handle);
  op.handle = 0;
  op.awaiting_sync = false;
  op.state = SendState::idle;
  outbox_.emit(Action::Kind::complete_send).send = &op;
}

void SendSide::on_rtr(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const auto rtr = load<RtrHeader>(message);
  RemoteMemory memory = remote_memory(rtr.address, (rtr.head.flags & flag::no_memory) == 0,
                                      message.subspan(sizeof rtr), rail);
  ++counters_.rtr_received;
  // The paper's policy needs a receiver that answers by it; the other one reads all it needs in the
  // RTR itself.
  const bool usable = config_.hazard_policy == HazardPolicy::envelope_sequence ||
                      (rtr.head.flags & flag::acknowledging) != 0;
  SendEnvelope* envelope = config_.speculation && usable
                               ? peer.send_envelopes.get(rtr.head.tag, config_.envelopes)
                               : nullptr;
  if (envelope == nullptr) {
    ++counters_.rtr_dropped;
    counters_.extra_control_bytes += message.size();
    return;
  }
  note_rtr_received(envelope->adaptation, rtr.base_sequence);
  hazard_.rtr_arrived(peer, *envelope, rtr, memory);
  if (SendOp* op = deferred_.take_met(peer, *envelope)) decide(*op);
}

void SendSide::on_revoke(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(head.tag))
    hazard_.revoke_arrived(peer, *envelope);
  // Who waits for the answer has not ended. Its absence leaves no gap in the stream.
  if ((head.flags & flag::nobody_waits) != 0 && host_.is_ending()) return;
  const std::uint32_t sequence = Outbox::take_sequence(peer, no_message_tag);
  counters_.extra_control_bytes += sizeof(RevokeHeader);
  outbox_.emit_control(
      peer, RevokeHeader{Outbox::forward_head(Kind::revoke_ack, peer, head.tag, sequence)});
}

void SendSide::on_rts_ack(Peer& peer, std::span<const std::byte> message) {
  const auto ack = load<RtsAckHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(ack.head.tag))
    hazard_.rts_ack_arrived(peer, *envelope, ack);
}

const char* SendSide::on_grant(std::span<const std::byte> message, const void* rail) {
  const auto grant = load<GrantHeader>(message);
  SendOp* op = sends_.find(grant.head.target);
  if (op == nullptr || op->state != SendState::waiting)
    return "a GRANT for a send that does not wait for one";
  if (grant.length_bytes == 0 || grant.length_bytes > op->length_bytes)
    return "a GRANT of another length than the message's";
  note_just_missed(*op, grant.head.flags);
  op->receive = grant.receive;
  op->take_bytes = grant.length_bytes;
  op->target = remote_memory(grant.address, (grant.head.flags & flag::no_memory) == 0,
                             message.subspan(sizeof grant), rail);
  advance(*op, op->target.accessible ? SendEvent::grant_memory : SendEvent::grant_push);
  return nullptr;
}

const char* SendSide::on_done(const DoneHeader& done) {
  SendOp* op = sends_.find(done.target);
  if (op == nullptr || op->state != SendState::waiting)
    return "a DONE for a send that does not wait for one";
  note_just_missed(*op, done.flags);
  advance(*op, SendEvent::done);
  return nullptr;
}

const char* SendSide::on_sync_ack(const TargetedHeader& ack) {
  SendOp* op = sends_.find(ack.target);
  if (op == nullptr || !op->awaiting_sync)
    return "a SYNC-ACK for a send that does not wait for one";
  finish(*op);
  return nullptr;
}

}  // namespace overlap::speculative
