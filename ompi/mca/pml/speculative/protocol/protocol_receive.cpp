// The receiver's half of the protocol: posting, matching, RTRs, cancelling.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cassert>

#include "protocol.hpp"

namespace overlap::speculative {
namespace {

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
    offers_.try_offer(op);
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
  if (message.kind == Kind::rtr_ack) {
    cancellation_.receive_collected(message, op);
    return nullptr;
  }
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
  if (message.kind == Kind::rts) offers_.acknowledge_match(message, message.answered);
}

/// A posted receive gets an eager message: it leaves its queue; the caller delivers and completes.
void Protocol::match_eager(ReceiveOp& op, Peer& peer, std::int32_t tag,
                           std::uint64_t length_bytes) {
  peer.comm->unpost(op);
  if (rtr_is_out(op.state)) [[unlikely]]
    offers_.mispredicted(peer, tag);
  if (op.handle != 0) [[unlikely]] {
    if (!cancellation_.try_leave_ghost(op)) machine_.close(op);
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

}  // namespace overlap::speculative
