// The sender's half of the protocol, and what both halves share.
// SPDX-License-Identifier: BSD-3-Clause
#include "protocol.hpp"

#include <cassert>
#include <cstring>

#include "protocol_emit.hpp"

namespace overlap::speculative {

Protocol::Protocol(const Config& config, Host& host, Counters& counters)
    : config_(config),
      host_(host),
      counters_(counters),
      streams_(host, config.process, config.speculation, config.held),
      outbox_(streams_) {
  // A tag that found no room in the paper's policy must stay without an envelope: half of its
  // history would be missing.
  config_.envelopes.may_forget = config.hazard_policy == HazardPolicy::envelope_sequence;
  hazard_ = make_hazard_control(config.hazard_policy, counters_, config_.envelopes);
}

Prefixed<EagerSyncHeader> Protocol::eager_sync_header(SendOp& op) {
  op.handle = sends_.add(op);
  op.awaiting_sync = true;
  Peer& peer = *op.peer;
  if (peer.defers) decide_deferred(peer);
  Prefixed<EagerSyncHeader> made;
  made.header = {Outbox::forward_head(Kind::eager_sync, peer, op.tag, eager_sequence(peer, op.tag)),
                 op.handle};
  made.with_prefix = streams_.must_announce(peer);
  if (made.with_prefix) made.prefix = streams_.announce(peer);
  return made;
}

Communicator& Protocol::add_communicator(const NewCommunicator& fresh) {
  Communicator& comm = streams_.add(fresh);
  comm.watch_every_eager = config_.speculation && hazard_->watches_every_eager();
  return comm;
}

const char* Protocol::take_early(Communicator& comm) {
  return admit_again(streams_.take_held(comm.context));
}

std::vector<Action> Protocol::end_streams(Communicator& comm) {
  std::vector<Action> ends;
  if (!config_.speculation || comm.incarnation == 0) return ends;
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    Peer* peer = comm.peer_if_known(static_cast<std::int32_t>(rank));
    // Whoever has had a message from here may have an RTR out, or send one before it gets this.
    if (peer == nullptr || peer->next_sequence == 0 || peer->ended || !peer->speculates) continue;
    const std::uint32_t sequence = Outbox::take_sequence(*peer, no_message_tag);
    ends.push_back(outbox_.control_action(
        *peer, RevokeHeader{Outbox::forward_head(Kind::stream_end, *peer, 0, sequence)}));
    counters_.extra_control_bytes += sizeof(RevokeHeader);
  }
  return ends;
}

void Protocol::remove_communicator(Communicator& comm) {
  for (std::size_t rank = 0; rank < comm.size(); ++rank) {
    if (const Peer* peer = comm.peer_if_known(static_cast<std::int32_t>(rank)))
      hazard_->forget(peer->kept_rtrs);
  }
  forget_ghosts(comm);
  streams_.remove(comm);
}

bool Protocol::wants_early_progress(Peer& peer, std::int32_t tag) noexcept {
  const SendEnvelope* envelope = peer.send_envelopes.find(tag);
  if (envelope == nullptr) return true;
  return envelope->kept.empty() && (!envelope->adaptation.stopped || envelope->adaptation.probed);
}

bool Protocol::wants_early_progress(Communicator& comm, const ReceiveOp& op) noexcept {
  if (comm.find_unexpected(op.source, op.tag) != nullptr) return false;
  if (!config_.speculation || op.source == any_source || op.tag == any_tag) return true;
  Peer* peer = comm.peer_if_known(op.source);
  const ReceiveEnvelope* envelope =
      peer == nullptr ? nullptr : peer->receive_envelopes.find(op.tag);
  // A stopped receiver looks: an RTS that is there already is no evidence for its RTRs (P1.15).
  return envelope == nullptr || !envelope->muted;
}

bool Protocol::has_rtr(Peer& peer, std::int32_t tag) noexcept {
  const SendEnvelope* envelope = peer.send_envelopes.find(tag);
  return envelope != nullptr && !envelope->kept.empty();
}

void Protocol::start_send(SendOp& op, std::uint64_t now_ns) {
  assert(op.state == SendState::idle);
  Peer& peer = *op.peer;
  if (peer.defers) decide_deferred(peer);
  if (now_ns != 0 && config_.speculation) {
    now_ns_ = now_ns;
    SendEnvelope* envelope = peer.send_envelopes.find(op.tag);
    if (envelope != nullptr && defer(op, *envelope, now_ns)) return;
  }
  decide(op);
}

/// Is an RTR worth a short wait (P1.14)? The paper's policy never waits.
bool Protocol::defer(SendOp& op, SendEnvelope& envelope, std::uint64_t now_ns) {
  Peer& peer = *op.peer;
  if (config_.hazard_policy != HazardPolicy::envelope_sequence || peer.ended ||
      envelope.adaptation.stopped)
    return false;
  if (!envelope.kept.empty() || op.synchronous) return false;  // it might not use one (fits)
  const std::uint64_t wait_ns = envelope.patience.wait_ns(config_.patience, op.length_bytes);
  if (wait_ns == 0) return false;
  op.started_ns = now_ns;
  op.decide_ns = now_ns + wait_ns;
  deferred_.push_back(&op);
  peer.defers = true;
  ++counters_.rtr_awaited;
  advance(op, SendEvent::defer);
  return true;
}

/// Take the deferred sends that `wanted` says off the list, and start them.
template <class Wanted>
void Protocol::decide_where(Wanted&& wanted) {
  for (std::size_t i = 0; i < deferred_.size();) {
    SendOp& op = *deferred_[i];
    if (!wanted(op)) {
      ++i;
      continue;
    }
    deferred_.erase(deferred_.begin() + static_cast<std::ptrdiff_t>(i));
    op.peer->defers = false;  // at most one at a time
    if (SendEnvelope* envelope = op.peer->send_envelopes.find(op.tag)) {
      if (!envelope->kept.empty()) {
        ++counters_.rtr_awaited_in_time;
      } else if (now_ns_ >= op.decide_ns) {
        envelope->patience.in_vain(config_.patience);
      }
    }
    decide(op);
  }
}

void Protocol::expire(std::uint64_t now_ns) {
  now_ns_ = now_ns;
  decide_where([now_ns](const SendOp& op) { return op.decide_ns <= now_ns; });
}

void Protocol::decide_deferred(Peer& peer) {
  decide_where([&peer](const SendOp& op) { return op.peer == &peer; });
}

/// An RTR of this envelope has arrived. One that is too late for its message has crossed it.
void Protocol::rtr_has_come(Peer& peer, SendEnvelope& envelope) {
  if (envelope.kept.empty()) {
    envelope.patience.crossed();
    return;
  }
  if (!peer.defers) return;
  decide_where([&](const SendOp& op) {
    if (op.peer != &peer || op.tag != envelope.tag) return false;
    envelope.patience.came(now_ns_ > op.started_ns ? now_ns_ - op.started_ns : 1);
    return true;
  });
}

/// A receive has ended or granted what this send's RTS has announced.
void Protocol::note_just_missed(const SendOp& op, std::uint8_t flags) noexcept {
  if ((flags & flag::just_missed) == 0) return;
  if (SendEnvelope* envelope = op.peer->send_envelopes.find(op.tag)) envelope->patience.crossed();
}

void Protocol::decide(SendOp& op) {
  Peer& peer = *op.peer;
  if (config_.speculation) peer.sent_tags.start(peer.next_sequence);
  op.sequence = Outbox::take_sequence(peer, op.tag);
  SendEnvelope* envelope =
      config_.speculation ? peer.send_envelopes.get(op.tag, config_.envelopes) : nullptr;
  if (envelope == nullptr) {
    emit_rts(op, Start{}, config_.speculation ? flag::adapt_stop : 0);
    return;
  }
  const Start start = hazard_->rendezvous_starts(peer, *envelope, op);
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
  emit_rts(op, start, adaptation_flags);
}

void Protocol::emit_rts(SendOp& op, const Start& start, std::uint8_t adaptation_flags) {
  const SendStep next = step(op.state, SendEvent::no_rtr);
  assert(next.legal && next.action == SendAction::send_rts);
  op.state = next.next;
  op.handle = sends_.add(op);
  RtsHeader rts{};
  rts.head = Outbox::forward_head(Kind::rts, *op.peer, op.tag, op.sequence);
  rts.head.flags = start.flags | adaptation_flags;
  rts.length_bytes = op.length_bytes;
  rts.send = op.handle;
  rts.hazard_epoch = start.epoch;
  ++counters_.rts_sent;
  outbox_.emit_control(*op.peer, rts).send = &op;
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
    ack.head = Outbox::forward_head(Kind::rtr_ack, *op.peer, op.tag, op.sequence);
    ack.head.flags = flags;
    ack.length_bytes = op.length_bytes;
    ack.receive = op.receive;
    ++counters_.rtr_ack_sent;
    counters_.extra_control_bytes += sizeof ack;
    outbox_.emit_control(*op.peer, ack).send = &op;
  };
  switch (action) {
    case SendAction::none: break;
    case SendAction::send_rts: break;  // emit_rts does it, with what the hazard control decided
    case SendAction::start_write: outbox_.emit(Action::Kind::write).send = &op; break;
    case SendAction::send_rtr_ack: rtr_ack(0); break;
    case SendAction::send_rtr_ack_done:
      rtr_ack(flag::data_done);
      finish(op);
      break;
    case SendAction::send_rtr_ack_and_push:
      rtr_ack(0);
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

void Protocol::finish(SendOp& op) {
  if (op.handle != 0) sends_.remove(op.handle);
  op.handle = 0;
  op.awaiting_sync = false;
  op.state = SendState::idle;
  outbox_.emit(Action::Kind::complete_send).send = &op;
}

void Protocol::on_rtr(Peer& peer, std::span<const std::byte> message, const void* rail) {
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
  hazard_->rtr_arrived(peer, *envelope, rtr, memory);
  rtr_has_come(peer, *envelope);
}

void Protocol::on_revoke(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(head.tag))
    hazard_->revoke_arrived(peer, *envelope);
  // Who waits for the answer has not ended. Its absence leaves no gap in the stream.
  if ((head.flags & flag::nobody_waits) != 0 && host_.is_ending()) return;
  const std::uint32_t sequence = Outbox::take_sequence(peer, no_message_tag);
  counters_.extra_control_bytes += sizeof(RevokeHeader);
  outbox_.emit_control(
      peer, RevokeHeader{Outbox::forward_head(Kind::revoke_ack, peer, head.tag, sequence)});
}

void Protocol::on_rts_ack(Peer& peer, std::span<const std::byte> message) {
  const auto ack = load<RtsAckHeader>(message);
  if (SendEnvelope* envelope = peer.send_envelopes.find(ack.head.tag))
    hazard_->rts_ack_arrived(peer, *envelope, ack);
}

const char* Protocol::on_grant(std::span<const std::byte> message, const void* rail) {
  const auto grant = load<GrantHeader>(message);
  SendOp* op = sends_.find(grant.head.target);
  if (is_stale(sends_, message)) return nullptr;
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

}  // namespace overlap::speculative
