// Cancelled receives and their ghosts.
// SPDX-License-Identifier: BSD-3-Clause
#include "cancellation.hpp"

#include <cstring>
#include <utility>
#include <vector>

namespace overlap::speculative {

void Cancellation::cancel(Communicator& comm, ReceiveOp& op) {
  if (op.state == ReceiveState::queued) {
    comm.unpost(op);
    machine_.advance(op, ReceiveEvent::cancel);
  } else if (op.state == ReceiveState::offered) {
    if (!may_cancel_alone(op)) {
      machine_.advance(op, ReceiveEvent::cancel);
      return;
    }
    comm.unpost(op);
    leave_ghost(op);
    ++op.peer->receive_envelopes.get(op.tag, unbounded_envelopes)->orphaned_rtrs;
    machine_.advance(op, ReceiveEvent::cancel_alone);
  }
}

/// Can no RTR of the envelope from this one on name memory? The messages that they are for move up
/// by one receive, and must not have been written to another one before.
bool Cancellation::may_cancel_alone(ReceiveOp& op) noexcept {
  const auto names_memory = [](const ReceiveOp& each) {
    return each.state != ReceiveState::queued && each.names_memory;
  };
  ReceiveEnvelope* envelope = op.peer->receive_envelopes.find(op.tag);
  MemoryFreeRange nothing_known;  // the envelope was forgotten
  MemoryFreeRange& known = envelope != nullptr ? envelope->memory_free : nothing_known;
  return known.from_on(op, op.peer->posted, names_memory);
}

/// A ghost takes the RTR of a receive over.
void Cancellation::leave_ghost(ReceiveOp& op) {
  Ghost& ghost = ghosts_.add(*op.peer, op.tag);
  hand_over(op, ghost);
  machine_.advance(ghost, ReceiveEvent::haunt);
}

void Cancellation::hand_over(ReceiveOp& op, Ghost& ghost) noexcept {
  ghost.capacity_bytes = op.capacity_bytes;
  ghost.names_memory = false;
  machine_.rebind(std::exchange(op.handle, 0), ghost);
}

bool Cancellation::try_leave_ghost(ReceiveOp& op) {
  if (ghosts_.empty() || op.state != ReceiveState::offered || op.names_memory ||
      !ghosts_.any(*op.peer, op.tag))
    return false;
  leave_ghost(op);
  return true;
}

void Cancellation::remove(Ghost& ghost) noexcept {
  machine_.close(ghost);
  ghosts_.remove(ghost);
}

/// RTRs without receives that a peer will not use any more. @param tag  any_tag: of all envelopes
void Cancellation::lay_ghosts(const Peer& peer, std::int32_t tag) {
  std::vector<Ghost*> gone;
  const auto see = [&](Ghost& ghost) {
    if (ghost.state == ReceiveState::ghost && ghost.peer == &peer) gone.push_back(&ghost);
  };
  if (tag == any_tag) {
    ghosts_.for_each(see);
  } else {
    ghosts_.for_each_of(peer, tag, see);
  }
  for (Ghost* ghost : gone) {
    machine_.advance(*ghost, ReceiveEvent::revoked);
    remove(*ghost);
  }
}

void Cancellation::forget(const Communicator& comm) {
  std::vector<Ghost*> gone;
  ghosts_.for_each([&](Ghost& ghost) {
    if (ghost.peer->comm == &comm) gone.push_back(&ghost);
  });
  for (Ghost* ghost : gone) {
    static_cast<void>(early_fragments_.take(ghost->handle));
    remove(*ghost);
  }
}

bool Cancellation::answers_orphan(ReceiveEnvelope* envelope) noexcept {
  if (envelope == nullptr || envelope->orphaned_rtrs == 0) return false;
  --envelope->orphaned_rtrs;
  return true;
}

const char* Cancellation::use_ghost(Ghost& ghost, Peer& peer, const RtrAckHeader& ack) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(ack.head.tag);
  ReceiveOp* op = peer.comm->find_posted(peer, ack.head.tag);
  if (op == nullptr) {
    static_cast<void>(answers_orphan(envelope));
    return collect(ghost, peer, ack);
  }
  const Handle used = ghost.handle;
  peer.comm->unpost(*op);
  if (op->state == ReceiveState::offered) {
    hand_over(*op, ghost);  // the message that would have used it moves up as well
  } else {
    static_cast<void>(answers_orphan(envelope));
    machine_.close(*op);  // of an RTR that is void
    ghosts_.remove(ghost);
  }
  machine_.rebind(used, *op);
  ReceiveMachine::set_matched(*op, peer, ack.head.tag, ack.length_bytes);
  op->coming_bytes = ack.length_bytes;
  machine_.advance(*op, ReceiveEvent::redirected);
  return take_early_fragments(used);
}

const char* Cancellation::collect(Ghost& ghost, Peer& peer, const RtrAckHeader& ack) {
  Arrived& message =
      unexpected_.make(peer, ack.head.tag, Kind::rtr_ack, ack.length_bytes, ack.length_bytes);
  message.ghost = ghost.handle;
  unexpected_.store(message);
  ghost.message = &message;
  ghost.coming_bytes = ack.length_bytes;
  machine_.advance(ghost, ReceiveEvent::rtr_ack);
  return take_early_fragments(ghost.handle);
}

void Cancellation::gather(Arrived& rts) {
  Ghost& ghost = ghosts_.add(*rts.peer, rts.tag);
  ghost.send = rts.send;
  ghost.length_bytes = ghost.capacity_bytes = ghost.coming_bytes = rts.length_bytes;
  ghost.message = &rts;
  machine_.open(ghost);
  rts.kind = Kind::rtr_ack;
  rts.ghost = ghost.handle;
  rts.payload_bytes = rts.length_bytes;
  machine_.advance(ghost, ReceiveEvent::gather);
}

void Cancellation::receive_collected(Arrived& message, ReceiveOp& op) {
  auto& ghost = static_cast<Ghost&>(*machine_.find(message.ghost));
  ReceiveMachine::set_matched(op, *message.peer, message.tag, message.length_bytes);
  ghost.receive = &op;
  machine_.advance(op, ReceiveEvent::collected);
}

/// The last fragment of a collected message is here.
void Cancellation::end_collection(Ghost& ghost) {
  Arrived& message = *ghost.message;
  ReceiveOp* op = ghost.receive;
  if (op != nullptr) {
    host_.deliver(*op, 0, {message.payload(), message.payload_bytes});
  } else {
    message.kind = Kind::eager;
    message.ghost = 0;
  }
  machine_.advance(ghost, ReceiveEvent::all_here);
  remove(ghost);
  if (op != nullptr) machine_.advance(*op, ReceiveEvent::all_here);
}

const char* Cancellation::put_early_fragment(const ReceiveOp& op, std::uint64_t offset_bytes,
                                             std::span<const std::byte> payload) {
  const bool kept = early_fragments_.put(op.handle, offset_bytes, payload, op.capacity_bytes);
  return kept ? nullptr : too_many_fragments;
}

const char* Cancellation::take_early_fragments(Handle handle) {
  if (early_fragments_.empty()) return nullptr;
  for (const auto& fragment : early_fragments_.take(handle)) {
    ReceiveOp* op = machine_.find(handle);
    if (op == nullptr) return too_many_fragments;
    if (const char* fault = take_fragment(*op, fragment.offset_bytes, fragment.payload))
      return fault;
  }
  return nullptr;
}

const char* Cancellation::take_fragment(ReceiveOp& op, std::uint64_t offset_bytes,
                                        std::span<const std::byte> payload) {
  if (offset_bytes > op.coming_bytes || payload.size() > op.coming_bytes - offset_bytes)
    return "a fragment behind the end of the buffer";
  if (payload.size() > op.coming_bytes - op.arrived_bytes) return too_many_fragments;
  op.arrived_bytes += payload.size();
  if (op.state != ReceiveState::collecting) {
    host_.deliver(op, offset_bytes, payload);
    machine_.check_all_here(op);
    return nullptr;
  }
  auto& ghost = static_cast<Ghost&>(op);
  std::memcpy(ghost.message->payload() + offset_bytes, payload.data(), payload.size());
  if (ghost.arrived_bytes >= ghost.coming_bytes) end_collection(ghost);
  return nullptr;
}

const char* Cancellation::on_revoke_ack(Peer& peer, std::int32_t tag) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(tag);
  if (envelope == nullptr || envelope->revokes_out == 0)
    return "a REVOKE-ACK that nobody waits for";
  // While a REVOKE is out nothing is offered: every RTR that is out is older than the first REVOKE
  // and void now.
  --envelope->revokes_out;
  envelope->orphaned_rtrs = 0;
  lay_ghosts(peer, tag);
  ReceiveOp* next = nullptr;
  for (ReceiveOp* op = peer.posted.find(tag); op != nullptr; op = next) {
    next = peer.posted.find_after(*op);
    if (op->state != ReceiveState::revoking) continue;
    peer.comm->unpost(*op);
    machine_.advance(*op, ReceiveEvent::revoked);
  }
  offers_.take_back(peer, tag);
  offers_.offer_waiting(peer, tag, true);
  return nullptr;
}

}  // namespace overlap::speculative
