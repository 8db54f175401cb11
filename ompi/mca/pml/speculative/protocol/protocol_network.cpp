// Messages from the network: streams in order, then to the machine or the queue they concern.
#include <algorithm>
#include <cassert>
#include <cstring>

#include "protocol.hpp"
#include "protocol_emit.hpp"

namespace overlap::speculative {
namespace {

// Sequence numbers wrap at 2^16; what is more than half of that ahead is behind.
constexpr std::uint16_t sequence_half = 0x8000;

}  // namespace

const char* Protocol::on_sequenced(Communicator& comm, std::span<const std::byte> message,
                                   const void* rail) {
  rail_ = rail;
  const auto head = load<SequencedHeader>(message);
  if (static_cast<std::size_t>(head.source) >= comm.size())
    return "a source rank outside the communicator";
  const bool forward = is_forward(kind_of(head.kind_version));
  if (!forward && head.incarnation != comm.incarnation) {
    // Sent for a communicator that had this context before and has been freed since: nobody waits for it (rtr is the only kind
    // that can outlive its communicator).
    ++counters_.rtr_stale;
    counters_.extra_control_bytes += message.size();
    return nullptr;
  }
  return enter_stream(comm.peer(head.source), message, forward);
}

const char* Protocol::enter_stream(Peer& peer, std::span<const std::byte> message, bool forward) {
  const auto head = load<SequencedHeader>(message);
  Stash& stash = forward ? peer.forward_stash : peer.reverse_stash;
  const auto expected = [&] {
    return forward ? static_cast<std::uint16_t>(peer.expected_sequence) : peer.expected_reverse;
  };
  const auto pass = [&](std::span<const std::byte> next) -> const char* {
    if (forward) return on_forward(peer, next);
    on_reverse(peer, next);
    return nullptr;
  };
  const auto distance = static_cast<std::uint16_t>(head.sequence - expected());
  if (distance >= sequence_half) return "a sequence number that has been seen already";
  if (distance != 0) {
    const bool fresh = stash.try_emplace(head.sequence, message.begin(), message.end()).second;
    return fresh ? nullptr : "a sequence number that has been seen already";
  }
  if (const char* fault = pass(message)) return fault;
  while (!stash.empty()) {
    const auto next = stash.find(expected());
    if (next == stash.end()) break;
    const std::vector<std::byte> held = std::move(next->second);
    stash.erase(next);
    rail_ = nullptr;
    if (const char* fault = pass(held)) return fault;
  }
  return nullptr;
}

const char* Protocol::on_forward(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  ++peer.expected_sequence;
  learn_incarnation(peer, head);
  if (kind == Kind::rtr_ack) return on_rtr_ack(peer, message);
  if (kind == Kind::revoke_ack) return on_revoke_ack(peer, message);
  if (kind == Kind::rts) return on_rts(peer, message);
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
    if (kind == Kind::eager_sync) emit_targeted(peer, Kind::sync_ack, 0, send);
    emit(Action::Kind::complete_receive).receive = op;
    return nullptr;
  }
  Arrived* arrived = Arrived::make(payload.size());
  arrived->peer = &peer;
  arrived->tag = head.tag;
  arrived->kind = kind;
  arrived->length_bytes = payload.size();
  arrived->send = send;
  if (!payload.empty()) std::memcpy(arrived->payload(), payload.data(), payload.size());
  comm.store(*arrived);
  counters_.unexpected_queue_max = std::max(counters_.unexpected_queue_max, comm.unexpected_count);
  return nullptr;
}

const char* Protocol::on_rts(Peer& peer, std::span<const std::byte> message) {
  const auto rts = load<RtsHeader>(message);
  const bool restarts = config_.speculation && note_rts_flags(peer, rts);
  Arrived* arrived = Arrived::make(0);
  arrived->peer = &peer;
  arrived->tag = rts.head.tag;
  arrived->kind = Kind::rts;
  arrived->flags = rts.head.flags;
  arrived->hazard_epoch = rts.hazard_epoch;
  arrived->length_bytes = rts.length_bytes;
  arrived->send = rts.send;
  arrived->source_memory = load_memory(rts.address, (rts.head.flags & flag::no_memory) == 0,
                                       message.subspan(sizeof rts), rail_);
  Communicator& comm = *peer.comm;
  if (ReceiveOp* op = comm.find_posted(peer, rts.head.tag)) {
    const bool rtr_out = op->state != ReceiveState::queued;
    comm.unpost(*op);
    acknowledge_match(*arrived, rtr_out);
    match_rts(*op, *arrived);
    Arrived::destroy(arrived);
    if (config_.speculation) offer_waiting(peer, rts.head.tag, restarts);
    return nullptr;
  }
  comm.store(*arrived);
  counters_.unexpected_queue_max = std::max(counters_.unexpected_queue_max, comm.unexpected_count);
  return nullptr;
}

/// What an RTS says about the speculation of its envelope. @returns  true when RTRs may be sent from now on and could not before
bool Protocol::note_rts_flags(Peer& peer, const RtsHeader& rts) {
  ReceiveEnvelope* envelope = peer.receive_envelopes.get(rts.head.tag, config_.envelopes);
  if (envelope == nullptr) return false;
  const bool before = envelope->may_offer();
  hazard_->rts_arrived(*envelope, rts.head.flags);
  if ((rts.head.flags & flag::adapt_stop) != 0) envelope->adaptation_stopped = true;
  if ((rts.head.flags & flag::adapt_resume) != 0) envelope->adaptation_stopped = false;
  envelope->muted = false;
  envelope->mispredictions = 0;
  if ((rts.head.flags & flag::hazard_stop) != 0) take_back_offers(peer, rts.head.tag);
  return !before && envelope->may_offer();
}

const char* Protocol::on_rtr_ack(Peer& peer, std::span<const std::byte> message) {
  const auto ack = load<RtrAckHeader>(message);
  ReceiveOp* op = receives_.find(ack.receive);
  if (op == nullptr || !is_posted(op->state) || op->state == ReceiveState::queued)
    return "an RTR-ACK for a receive without RTR";
  if (peer.comm->find_posted(peer, ack.head.tag) != op)
    return "an RTR-ACK for a receive that the message does not match";
  if (ack.length_bytes > op->capacity_bytes) return "an RTR-ACK for more than the buffer holds";
  peer.comm->unpost(*op);
  if (ReceiveEnvelope* envelope = peer.receive_envelopes.find(ack.head.tag))
    envelope->mispredictions = 0;
  set_matched(*op, peer, ack.head.tag, ack.length_bytes);
  op->data_done = op->data_done || (ack.head.flags & flag::data_done) != 0;
  advance(*op, ReceiveEvent::rtr_ack);
  check_all_here(*op);
  return nullptr;
}

const char* Protocol::on_revoke_ack(Peer& peer, std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(message);
  ReceiveEnvelope* envelope = peer.receive_envelopes.find(head.tag);
  if (envelope == nullptr || envelope->revokes_out == 0)
    return "a REVOKE-ACK that nobody waits for";
  // While a REVOKE is out nothing is offered: every RTR that is out is older than the first REVOKE and void now.
  --envelope->revokes_out;
  ReceiveOp* next = nullptr;
  for (ReceiveOp* op = peer.posted.find(head.tag); op != nullptr; op = next) {
    next = peer.posted.find_after(*op);
    if (op->state != ReceiveState::revoking) continue;
    peer.comm->unpost(*op);
    advance(*op, ReceiveEvent::revoked);
  }
  take_back_offers(peer, head.tag);
  offer_waiting(peer, head.tag, true);
  return nullptr;
}

void Protocol::on_reverse(Peer& peer, std::span<const std::byte> message) {
  const Kind kind = kind_of(load<SequencedHeader>(message).kind_version);
  ++peer.expected_reverse;
  if (kind == Kind::rtr) {
    on_rtr(peer, message);
  } else if (kind == Kind::revoke) {
    on_revoke(peer, message);
  } else {
    on_rts_ack(peer, message);
  }
}

const char* Protocol::on_targeted(std::span<const std::byte> message, const void* rail) {
  rail_ = rail;
  const auto head = load<TargetedHeader>(message);
  switch (kind_of(head.kind_version)) {
    case Kind::grant: return on_grant(message);
    case Kind::frag: return on_frag(message);
    case Kind::done: return on_done(head);
    case Kind::sync_ack: {
      SendOp* op = sends_.find(head.target);
      if (op == nullptr || !op->awaiting_sync)
        return "a SYNC-ACK for a send that does not wait for one";
      finish(*op);
      return nullptr;
    }
    case Kind::eager:
    case Kind::eager_sync:
    case Kind::rts:
    case Kind::rtr_ack:
    case Kind::revoke_ack:
    case Kind::rtr:
    case Kind::rts_ack:
    case Kind::revoke: break;
  }
  return "a kind of message that names no request";
}

const char* Protocol::on_frag(std::span<const std::byte> message) {
  const auto frag = load<FragHeader>(message);
  const auto payload = message.subspan(sizeof frag);
  ReceiveOp* op = receives_.find(frag.head.target);
  const char* nobody = "a fragment for a receive that does not wait for one";
  if (op == nullptr || !is_open(op->state)) return nobody;
  const bool matched = !is_posted(op->state);
  const std::uint64_t room_bytes = matched ? op->take_bytes() : op->capacity_bytes;
  if (frag.offset_bytes > room_bytes || payload.size() > room_bytes - frag.offset_bytes)
    return "a fragment behind the end of the buffer";
  if (payload.size() > room_bytes - op->arrived_bytes)
    return "more fragments than the message has bytes";
  host_.deliver(*op, frag.offset_bytes, payload);
  op->arrived_bytes += payload.size();
  if (matched) check_all_here(*op);
  return nullptr;
}

const char* Protocol::on_done(const TargetedHeader& head) {
  if ((head.flags & flag::to_receiver) == 0) {
    SendOp* op = sends_.find(head.target);
    if (op == nullptr || op->state != SendState::waiting)
      return "a DONE for a send that does not wait for one";
    advance(*op, SendEvent::done);
    return nullptr;
  }
  ReceiveOp* op = receives_.find(head.target);
  if (op == nullptr || !is_open(op->state))
    return "a DONE for a receive that does not wait for one";
  op->data_done = true;
  if (!is_posted(op->state)) check_all_here(*op);
  return nullptr;
}

}  // namespace overlap::speculative
