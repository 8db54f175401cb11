// The receiver's half of the protocol.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_side.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>
#include <vector>

namespace overlap::speculative {
namespace {

constexpr bool rtr_is_out(ReceiveState state) noexcept {
  return state == ReceiveState::offered || state == ReceiveState::revoking;
}

/// What is taken at once of an RTS without a receive.
constexpr std::uint64_t taken_bytes(const RtsHeader& rts) noexcept {
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20U;  // of any eager limit
  constexpr unsigned kinds = flag::eager_sized | flag::synchronous;
  const bool may_be = (rts.head.flags & kinds) == flag::eager_sized;
  return may_be && rts.length_bytes <= most_bytes ? rts.length_bytes : 0;
}

}  // namespace

Arrived* ReceiveSide::post(Communicator& comm, ReceiveOp& op) {
  assert(op.state == ReceiveState::idle);
  op.length_bytes = 0;
  op.arrived_bytes = 0;
  op.data_done = false;
  op.done_parts = 0;
  if (Arrived* message = comm.find_unexpected(op.source, op.tag))
    return receive_unexpected(*message, op);
  op.found_by_look = false;
  comm.post(op);
  op.state = ReceiveState::queued;
  counters_.posted_queue_max = std::max(counters_.posted_queue_max, comm.posted_count);
  const bool may_speculate = op.speculate && config_.speculation;
  if (may_speculate && op.source != any_source && op.tag != any_tag) [[unlikely]]
    offers_.try_offer(op);
  return nullptr;
}

Arrived* ReceiveSide::receive_unexpected(Arrived& message, ReceiveOp& op) {
  op.found_by_look = just_missed(op, message);
  take(message);
  return receive_taken(message, op);
}

/// Would an RTR for this receive have crossed the RTS that it finds? Its sender may wait a little
/// for the next one (P1.14).
bool ReceiveSide::just_missed(const ReceiveOp& op, const Arrived& message) const noexcept {
  if (!op.speculate || !config_.speculation || message.kind != Kind::rts ||
      op.source == any_source || op.tag == any_tag || !message.peer->speculates)
    return false;
  const ReceiveEnvelope* envelope = message.peer->receive_envelopes.find(message.tag);
  if (envelope != nullptr && !envelope->may_offer()) return false;
  const std::uint64_t now_ns = message.arrived_ns == 0 ? 0 : host_.now_ns();
  return op.found_by_look ||
         (now_ns != 0 && now_ns - message.arrived_ns <= config_.patience.wait_max_ns);
}

Arrived* ReceiveSide::receive_taken(Arrived& message, ReceiveOp& op) {
  if (!left_.empty()) [[unlikely]]
    drop_left([&message](const Arrived* each) { return each == &message; });
  op.arrived_bytes = 0;
  op.data_done = false;
  op.done_parts = 0;
  if (message.kind == Kind::rtr_ack) {
    cancellation_.receive_collected(message, op);
    return nullptr;
  }
  if (message.kind == Kind::rts) {
    if ((message.flags & flag::eager_sized) == 0) ++counters_.late_receives;
    match_rts(op, message);
    Arrived::destroy(&message);
    return nullptr;
  }
  ReceiveMachine::set_matched(op, *message.peer, message.tag, message.length_bytes);
  if (message.kind == Kind::eager_sync)
    outbox_.emit_targeted(*message.peer, Kind::sync_ack, 0, message.send).receive = &op;
  return &message;
}

void ReceiveSide::take(Arrived& message) {
  message.peer->comm->take(message);
  if (message.kind == Kind::rts) offers_.acknowledge_match(message, message.answered);
}

/// A receive whose RTR is out, or was, gets an eager message.
void ReceiveSide::drop_offer(ReceiveOp& op, Peer& peer, std::int32_t tag) {
  if (rtr_is_out(op.state)) offers_.mispredicted(peer, tag);
  if (!cancellation_.try_leave_ghost(op)) machine_.close(op);
}

/// A receive, already out of its queue, gets an RTS.
void ReceiveSide::match_rts(ReceiveOp& op, const Arrived& rts) {
  ReceiveMachine::set_matched(op, *rts.peer, rts.tag, rts.length_bytes);
  op.send = rts.send;
  op.source_memory = rts.source_memory;
  op.sender_waits = (rts.flags & flag::sender_waits) != 0;
  if (op.take_bytes() == 0) {
    machine_.advance(op, ReceiveEvent::rts_nothing);
    return;
  }
  machine_.open(op);
  op.coming_bytes = op.take_bytes();
  machine_.advance(op, ReceiveEvent::rts);
}

void ReceiveSide::on_eager(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  const auto payload = message.subspan(header_bytes(kind));
  const Handle send = kind == Kind::eager_sync ? load<EagerSyncHeader>(message).send : 0;
  Communicator& comm = *peer.comm;
  if (payload.size() >= Replies::message_min_bytes) peer.replies.note_message(false);
  if (ReceiveOp* op = comm.find_posted(peer, head.tag)) {
    match_eager(*op, peer, head.tag, payload.size());
    host_.deliver(*op, 0, payload);
    if (kind == Kind::eager_sync) outbox_.emit_targeted(peer, Kind::sync_ack, 0, send).receive = op;
    outbox_.emit(Action::Kind::complete_receive).receive = op;
    return;
  }
  Arrived& arrived = unexpected_.make(peer, head.tag, kind, payload.size(), payload.size());
  arrived.send = send;
  if (!payload.empty()) std::memcpy(arrived.payload(), payload.data(), payload.size());
  unexpected_.store(arrived);
}

void ReceiveSide::on_rts(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const auto rts = load<RtsHeader>(message);
  Communicator& comm = *peer.comm;
  ReceiveOp* op = comm.find_posted(peer, rts.head.tag);
  if ((rts.head.flags & flag::eager_sized) != 0) peer.replies.note_message(true);
  const bool restarts = config_.speculation && offers_.rts_came(peer, rts, op);
  const std::uint64_t room_bytes = op == nullptr ? taken_bytes(rts) : 0;
  Arrived& arrived = unexpected_.make(peer, rts.head.tag, Kind::rts, rts.length_bytes, room_bytes);
  arrived.payload_bytes = 0;
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
    const bool large = (rts.head.flags & flag::eager_sized) == 0;
    if (large && (op->source == any_source || op->tag == any_tag)) ++counters_.wildcard_receives;
    match_rts(*op, arrived);
    Arrived::destroy(&arrived);
    if (config_.speculation) offers_.offer_waiting(peer, rts.head.tag, restarts);
    return;
  }
  if (config_.speculation) arrived.arrived_ns = host_.now_ns();
  arrived.answered = Cancellation::answers_orphan(peer.receive_envelopes.find(rts.head.tag));
  unexpected_.store(arrived);
  if (room_bytes == 0) return;
  if (expecting_ == 0 || left_.size() >= left_max) {
    take_at_once(arrived);
    return;
  }
  left_.push_back(&arrived);
  host_.note_left(peer);
}

void ReceiveSide::take_left() {
  const std::size_t count = std::exchange(left_before_, 0);
  for (std::size_t i = 0; i < count; ++i) take_at_once(*left_[i]);
  left_.erase(left_.begin(), left_.begin() + static_cast<std::ptrdiff_t>(count));
  left_before_ = left_.size();
  if (count != 0 && left_.empty()) host_.note_none_left();
}

/// The first time its receive is likely to follow. A program that finds it again may look at no
/// network for long: all that is left is taken.
void ReceiveSide::note_found(Arrived& message) {
  if (!std::exchange(message.found, true)) return;
  left_before_ = left_.size();
  take_left();
}

template <class Concerns>
void ReceiveSide::drop_left(Concerns&& concerns) {
  const std::size_t before = left_.size();
  for (std::size_t i = before; i-- > 0;) {
    if (!concerns(left_[i])) continue;
    left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(i));
    if (i < left_before_) --left_before_;
  }
  if (before != 0 && left_.empty()) host_.note_none_left();
}

void ReceiveSide::forget(const Communicator& comm) {
  drop_left([&comm](const Arrived* each) { return each->peer->comm == &comm; });
  cancellation_.forget(comm);
}

/// Make an RTS an eager message, if it could have been one: its sender may be in MPI_Send, and must
/// not wait for a receive there. What cannot be copied is pushed. What its match has to acknowledge
/// stays an RTS.
void ReceiveSide::take_at_once(Arrived& rts) {
  if (rts.answered || offers_.must_acknowledge(rts, false)) return;
  if (!host_.copy(*rts.peer, rts.source_memory, {rts.payload(), rts.length_bytes})) {
    ++counters_.unexpected_pushed;
    cancellation_.gather(rts);
    return;
  }
  rts.kind = Kind::eager;
  rts.payload_bytes = rts.length_bytes;
  ++counters_.unexpected_copied;
  outbox_.emit_targeted(*rts.peer, Kind::done, 0, rts.send);
}

const char* ReceiveSide::on_rtr_ack(Peer& peer, std::span<const std::byte> message) {
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
void ReceiveSide::on_stream_end(Peer& peer) {
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

const char* ReceiveSide::on_frag(std::span<const std::byte> message) {
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

const char* ReceiveSide::on_done(const DoneHeader& done) {
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
