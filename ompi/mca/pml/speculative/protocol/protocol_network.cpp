// Messages from the network: streams in order, then to the machine or the queue they concern.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cassert>
#include <cstring>

#include "protocol.hpp"

namespace overlap::speculative {
namespace {

// Sequence numbers wrap at 2^16; what is more than half of that ahead is behind.
constexpr std::uint16_t sequence_half = 0x8000;

}  // namespace

const char* Protocol::on_message(std::span<const std::byte> message, const void* rail) {
  const Kind kind = kind_of(std::to_integer<std::uint8_t>(message[0]));
  return is_targeted(kind) ? on_targeted(message, rail) : on_sequenced(message, rail);
}

void Protocol::drop_stale(std::span<const std::byte> message) {
  ++counters_.stale_dropped;
  counters_.extra_control_bytes += message.size();
}

const char* Protocol::on_sequenced(std::span<const std::byte> whole, const void* rail) {
  EraPrefix prefix{};
  const bool with_prefix = kind_of(std::to_integer<std::uint8_t>(whole[0])) == Kind::era;
  if (with_prefix) prefix = load<EraPrefix>(whole);
  const auto message = behind_prefix(whole);
  const auto head = load<SequencedHeader>(message);
  const Streams::Admission admission = streams_.admit(head, with_prefix ? &prefix : nullptr, whole);
  counters_.stale_dropped += admission.dropped;
  switch (admission.verdict) {
    case Streams::Verdict::held: return nullptr;
    case Streams::Verdict::stale: drop_stale(whole); return nullptr;
    case Streams::Verdict::fault: return admission.fault;
    case Streams::Verdict::pass:
    case Streams::Verdict::bound: break;
  }
  const bool forward = is_forward(kind_of(head.kind_version));
  if (const char* fault = enter_stream(*admission.peer, message, rail, forward)) return fault;
  if (admission.verdict != Streams::Verdict::bound) return nullptr;
  return admit_again(streams_.take_held(identity_of(head)));
}

const char* Protocol::admit_again(std::vector<HeldMessages::Held> held) {
  for (const HeldMessages::Held& each : held) {
    if (const char* fault = on_sequenced(each.bytes, nullptr)) return fault;
  }
  return nullptr;
}

const char* Protocol::enter_stream(Peer& peer, std::span<const std::byte> message, const void* rail,
                                   bool forward) {
  const auto head = load<SequencedHeader>(message);
  Stash& stash = forward ? peer.forward_stash : peer.reverse_stash;
  const auto expected = [&] {
    return forward ? static_cast<std::uint16_t>(peer.expected_sequence) : peer.expected_reverse;
  };
  const auto pass = [&](std::span<const std::byte> next, const void* next_rail) -> const char* {
    if (forward) return on_forward(peer, next, next_rail);
    on_reverse(peer, next, next_rail);
    return nullptr;
  };
  const auto distance = static_cast<std::uint16_t>(head.sequence - expected());
  if (distance >= sequence_half) return "a sequence number that has been seen already";
  if (distance != 0)
    return stash.put(head.sequence, message) ? nullptr
                                             : "a sequence number that has been seen already";
  if (const char* fault = pass(message, rail)) return fault;
  while (const auto held = stash.take(expected())) {
    if (const char* fault = pass(*held, nullptr)) return fault;
  }
  return nullptr;
}

const char* Protocol::on_forward(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const auto head = load<SequencedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  if (peer.ended) return "a message behind the end of its stream";
  ++peer.expected_sequence;
  if (kind == Kind::stream_end) {
    on_stream_end(peer);
    return nullptr;
  }
  if (kind == Kind::rtr_ack) return on_rtr_ack(peer, message);
  if (kind == Kind::revoke_ack) return cancellation_.on_revoke_ack(peer, head.tag);
  if (kind == Kind::rts) return on_rts(peer, message, rail);
  return on_eager(peer, message);
}

const char* Protocol::on_eager(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  const auto payload = message.subspan(header_bytes(kind));
  const Handle send = kind == Kind::eager_sync ? load<EagerSyncHeader>(message).send : 0;
  Communicator& comm = *peer.comm;
  if (ReceiveOp* op = comm.find_posted(peer, head.tag)) {
    match_eager(*op, peer, head.tag, payload.size());
    host_.deliver(*op, 0, payload);
    if (kind == Kind::eager_sync) outbox_.emit_targeted(peer, Kind::sync_ack, 0, send).receive = op;
    outbox_.emit(Action::Kind::complete_receive).receive = op;
    return nullptr;
  }
  Arrived& arrived = unexpected_.make(peer, head.tag, kind, payload.size(), payload.size());
  arrived.send = send;
  if (!payload.empty()) std::memcpy(arrived.payload(), payload.data(), payload.size());
  unexpected_.store(arrived);
  return nullptr;
}

const char* Protocol::on_rts(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const auto rts = load<RtsHeader>(message);
  Communicator& comm = *peer.comm;
  ReceiveOp* op = comm.find_posted(peer, rts.head.tag);
  const bool restarts = config_.speculation && offers_.rts_came(peer, rts, op);
  Arrived& arrived = unexpected_.make(peer, rts.head.tag, Kind::rts, rts.length_bytes, 0);
  arrived.flags = rts.head.flags;
  arrived.hazard_epoch = rts.hazard_epoch;
  arrived.send = rts.send;
  arrived.source_memory = remote_memory(rts.address, (rts.head.flags & flag::no_memory) == 0,
                                        message.subspan(sizeof rts), rail);
  if (op != nullptr) {
    const bool rtr_out = op->state != ReceiveState::queued ||
                         Cancellation::answers_orphan(peer.receive_envelopes.find(rts.head.tag));
    cancellation_.try_leave_ghost(*op);
    comm.unpost(*op);
    offers_.acknowledge_match(arrived, rtr_out);
    if (op->source == any_source || op->tag == any_tag) ++counters_.wildcard_receives;
    match_rts(*op, arrived);
    Arrived::destroy(&arrived);
    if (config_.speculation) offers_.offer_waiting(peer, rts.head.tag, restarts);
    return nullptr;
  }
  if (config_.speculation) arrived.arrived_ns = host_.now_ns();
  arrived.answered = Cancellation::answers_orphan(peer.receive_envelopes.find(rts.head.tag));
  unexpected_.store(arrived);
  return nullptr;
}

const char* Protocol::on_rtr_ack(Peer& peer, std::span<const std::byte> message) {
  const auto ack = load<RtrAckHeader>(message);
  ReceiveOp* op = machine_.find(ack.receive);
  const char* without = "an RTR-ACK for a receive without RTR";
  if (op == nullptr) return without;
  if (op->state == ReceiveState::ghost) {
    if (op->peer != &peer || op->tag != ack.head.tag) return without;
    if (ack.length_bytes > op->capacity_bytes) return "an RTR-ACK for more than the buffer holds";
    return cancellation_.use_ghost(static_cast<Ghost&>(*op), peer, ack);
  }
  if (!is_posted(op->state) || op->state == ReceiveState::queued) return without;
  if (peer.comm->find_posted(peer, ack.head.tag) != op)
    return "an RTR-ACK for a receive that the message does not match";
  if (ack.length_bytes > op->capacity_bytes) return "an RTR-ACK for more than the buffer holds";
  peer.comm->unpost(*op);
  const bool restarts = offers_.used(peer, ack.head.tag);
  ReceiveMachine::set_matched(*op, peer, ack.head.tag, ack.length_bytes);
  op->data_done = op->data_done || (ack.head.flags & flag::data_done) != 0;
  op->coming_bytes = ack.length_bytes;
  const Handle handle = op->handle;
  machine_.advance(*op, ReceiveEvent::rtr_ack);
  machine_.check_all_here(*op);
  if (const char* fault = cancellation_.take_early_fragments(handle)) return fault;
  if (restarts) offers_.offer_waiting(peer, ack.head.tag, true);
  return nullptr;
}

/// The peer has freed the communicator: no RTR that is out will be used, and nothing is answered
/// any more.
void Protocol::on_stream_end(Peer& peer) {
  peer.ended = true;
  cancellation_.stream_ended(peer);
  std::vector<ReceiveOp*> open;
  peer.posted.for_each([&open](ReceiveOp& op) {
    if (op.state != ReceiveState::queued) open.push_back(&op);
  });
  for (ReceiveOp* op : open) {
    if (op->state == ReceiveState::revoking) {
      peer.comm->unpost(*op);
      machine_.advance(*op, ReceiveEvent::revoked);
    } else {
      machine_.advance(*op, ReceiveEvent::take_back);
    }
  }
}

void Protocol::on_reverse(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const Kind kind = kind_of(load<SequencedHeader>(message).kind_version);
  ++peer.expected_reverse;
  if (kind == Kind::rtr) {
    sending_.on_rtr(peer, message, rail);
  } else if (kind == Kind::revoke) {
    sending_.on_revoke(peer, message);
  } else {
    sending_.on_rts_ack(peer, message);
  }
}

const char* Protocol::on_targeted(std::span<const std::byte> message, const void* rail) {
  const auto head = load<TargetedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  const bool to_receiver =
      kind == Kind::frag || (kind == Kind::done && (head.flags & flag::to_receiver) != 0);
  // It names a request that has ended since.
  if (to_receiver ? machine_.is_stale(head.target) : sending_.is_stale(head.target)) {
    drop_stale(message);
    return nullptr;
  }
  switch (kind) {
    case Kind::grant: return sending_.on_grant(message, rail);
    case Kind::frag: return on_frag(message);
    case Kind::done: return to_receiver ? on_done(head) : sending_.on_done(head);
    case Kind::sync_ack: return sending_.on_sync_ack(head);
    case Kind::eager:
    case Kind::eager_sync:
    case Kind::rts:
    case Kind::rtr_ack:
    case Kind::revoke_ack:
    case Kind::stream_end:
    case Kind::rtr:
    case Kind::rts_ack:
    case Kind::revoke:
    case Kind::era: break;
  }
  return "a kind of message that names no request";
}

const char* Protocol::on_frag(std::span<const std::byte> message) {
  const auto frag = load<FragHeader>(message);
  const auto payload = message.subspan(sizeof frag);
  ReceiveOp* op = machine_.find(frag.head.target);
  const char* nobody = "a fragment for a receive that does not wait for one";
  if (op == nullptr || !is_open(op->state)) return nobody;
  const bool matched = !is_posted(op->state) && op->state != ReceiveState::ghost;
  if (matched) return cancellation_.take_fragment(*op, frag.offset_bytes, payload);
  const std::uint64_t room_bytes = op->capacity_bytes;
  if (frag.offset_bytes > room_bytes || payload.size() > room_bytes - frag.offset_bytes)
    return "a fragment behind the end of the buffer";
  if (!op->names_memory) return cancellation_.put_early_fragment(*op, frag.offset_bytes, payload);
  if (payload.size() > room_bytes - op->arrived_bytes) return too_many_fragments;
  host_.deliver(*op, frag.offset_bytes, payload);
  op->arrived_bytes += payload.size();
  return nullptr;
}

const char* Protocol::on_done(const DoneHeader& done) {
  ReceiveOp* op = machine_.find(done.target);
  if (op == nullptr || !is_open(op->state) || is_ghost(op->state))
    return "a DONE for a receive that does not wait for one";
  // A striped transfer ends with one DONE by each rail, ordered after the rail's own share.
  if (++op->done_parts < done.parts) return nullptr;
  op->data_done = true;
  if (!is_posted(op->state)) machine_.check_all_here(*op);
  return nullptr;
}

}  // namespace overlap::speculative
