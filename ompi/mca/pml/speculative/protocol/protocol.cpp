// The sender's half of the protocol, and what both halves share.
#include "protocol.hpp"

#include <cassert>
#include <cstring>

#include "protocol_emit.hpp"

namespace overlap::speculative {

Protocol::Protocol(const Config& config, Host& host, Counters& counters)
    : config_(config), host_(host), counters_(counters) {
  // A tag that found no room in the paper's policy must stay without an envelope: half of its history would be missing.
  config_.envelopes.may_forget = config.hazard_policy == HazardPolicy::envelope_sequence;
  hazard_ = make_hazard_control(config.hazard_policy, counters_, config_.envelopes);
}

Action& Protocol::emit(Action::Kind kind) {
  Action& action = actions_.emplace_back();
  action.kind = kind;
  return action;
}

SequencedHeader Protocol::forward_head(Kind kind, Peer& peer, std::int32_t tag,
                                       std::uint32_t sequence) const noexcept {
  return {kind_version(kind),    0,   peer.comm->context,
          peer.comm->my_rank,    tag, static_cast<std::uint16_t>(sequence),
          peer.comm->incarnation};
}

SequencedHeader Protocol::reverse_head(Kind kind, Peer& peer, std::int32_t tag) noexcept {
  return {kind_version(kind), 0, peer.comm->context, peer.comm->my_rank, tag, peer.next_reverse++,
          peer.incarnation};
}

Action& Protocol::emit_targeted(Peer& peer, Kind kind, std::uint8_t flags, Handle target) {
  return emit_control(peer, TargetedHeader{kind_version(kind), flags, 0, 0, target});
}

Handle Protocol::await_sync(SendOp& op) {
  op.handle = sends_.add(op);
  op.awaiting_sync = true;
  return op.handle;
}

bool Protocol::wants_early_progress(Peer& peer, std::int32_t tag) noexcept {
  const SendEnvelope* envelope = peer.send_envelopes.find(tag);
  return envelope == nullptr || !envelope->adaptation.stopped;
}

void Protocol::start_send(SendOp& op) {
  assert(op.state == SendState::idle);
  Peer& peer = *op.peer;
  op.sequence = take_sequence(peer, op.tag);
  SendEnvelope* envelope =
      config_.speculation ? peer.send_envelopes.get(op.tag, config_.envelopes) : nullptr;
  if (envelope == nullptr) {
    emit_rts(op, Start{}, config_.speculation ? flag::adapt_stop : 0);
    return;
  }
  const Start start = hazard_->rendezvous_starts(peer, *envelope, op.length_bytes);
  if (start.use_rtr) {
    note_rtr_used(envelope->adaptation);
    ++counters_.rtr_used;
    op.receive = start.rtr.receive;
    op.take_bytes = op.length_bytes;
    op.target = start.rtr.memory;
    advance(op, op.target.accessible ? SendEvent::rtr_memory : SendEvent::rtr_push);
    return;
  }
  std::uint8_t adaptation_flags = 0;
  switch (before_rts(config_.adaptation, envelope->adaptation)) {
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
  emit_rts(op, start, adaptation_flags);
}

void Protocol::emit_rts(SendOp& op, const Start& start, std::uint8_t adaptation_flags) {
  const SendStep next = step(op.state, SendEvent::no_rtr);
  assert(next.legal && next.action == SendAction::send_rts);
  op.state = next.next;
  op.handle = sends_.add(op);
  RtsHeader rts{};
  rts.head = forward_head(Kind::rts, *op.peer, op.tag, op.sequence);
  rts.head.flags = start.flags | adaptation_flags;
  rts.length_bytes = op.length_bytes;
  rts.send = op.handle;
  rts.hazard_epoch = start.epoch;
  ++counters_.rts_sent;
  emit_control(*op.peer, rts).send = &op;
}

void Protocol::advance(SendOp& op, SendEvent event) {
  const SendStep next = step(op.state, event);
  assert(next.legal);
  if (!next.legal) return;
  op.state = next.next;
  perform(op, next.action);
}

void Protocol::perform(SendOp& op, SendAction action) {
  const auto rtr_ack = [&](std::uint8_t flags) {
    RtrAckHeader ack{};
    ack.head = forward_head(Kind::rtr_ack, *op.peer, op.tag, op.sequence);
    ack.head.flags = flags;
    ack.length_bytes = op.length_bytes;
    ack.receive = op.receive;
    ++counters_.rtr_ack_sent;
    counters_.extra_control_bytes += sizeof ack;
    emit_control(*op.peer, ack).send = &op;
  };
  switch (action) {
    case SendAction::none: break;
    case SendAction::send_rts: break;  // emit_rts does it, with what the hazard control decided
    case SendAction::start_write: emit(Action::Kind::write).send = &op; break;
    case SendAction::send_rtr_ack: rtr_ack(0); break;
    case SendAction::send_rtr_ack_done:
      rtr_ack(flag::data_done);
      finish(op);
      break;
    case SendAction::send_rtr_ack_and_push:
      rtr_ack(0);
      emit(Action::Kind::push).send = &op;
      break;
    case SendAction::start_push: emit(Action::Kind::push).send = &op; break;
    case SendAction::send_done:
      emit_control(*op.peer, done_behind(op)).send = &op;
      finish(op);
      break;
    case SendAction::complete: finish(op); break;
    case SendAction::break_off: emit(Action::Kind::break_off).send = &op; break;
  }
}

void Protocol::finish(SendOp& op) {
  if (op.handle != 0) sends_.remove(op.handle);
  op.handle = 0;
  op.awaiting_sync = false;
  op.state = SendState::idle;
  emit(Action::Kind::complete_send).send = &op;
}

void Protocol::on_rtr(Peer& peer, std::span<const std::byte> message) {
  const auto rtr = load<RtrHeader>(message);
  RemoteMemory memory = load_memory(rtr.address, (rtr.head.flags & flag::no_memory) == 0,
                                    message.subspan(sizeof rtr), rail_);
  ++counters_.rtr_received;
  // The paper's policy needs a receiver that answers by it; the other one reads all it needs in the RTR itself.
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
  note_rtr_received(envelope->adaptation);
  hazard_->rtr_arrived(peer, *envelope, rtr, memory);
}

void Protocol::on_revoke(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(head.tag))
    hazard_->revoke_arrived(peer, *envelope);
  const std::uint32_t sequence = take_sequence(peer, no_message_tag);
  counters_.extra_control_bytes += sizeof(RevokeHeader);
  emit_control(peer, RevokeHeader{forward_head(Kind::revoke_ack, peer, head.tag, sequence)});
}

void Protocol::on_rts_ack(Peer& peer, std::span<const std::byte> message) {
  const auto ack = load<RtsAckHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(ack.head.tag))
    hazard_->rts_ack_arrived(peer, *envelope, ack);
}

const char* Protocol::on_grant(std::span<const std::byte> message) {
  const auto grant = load<GrantHeader>(message);
  SendOp* op = sends_.find(grant.head.target);
  if (op == nullptr || op->state != SendState::waiting)
    return "a GRANT for a send that does not wait for one";
  if (grant.length_bytes == 0 || grant.length_bytes > op->length_bytes)
    return "a GRANT of another length than the message's";
  op->receive = grant.receive;
  op->take_bytes = grant.length_bytes;
  op->target = load_memory(grant.address, (grant.head.flags & flag::no_memory) == 0,
                           message.subspan(sizeof grant), rail_);
  advance(*op, op->target.accessible ? SendEvent::grant_memory : SendEvent::grant_push);
  return nullptr;
}

}  // namespace overlap::speculative
