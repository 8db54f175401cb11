// Communicators that come and go; messages from the network, put in order and dispatched.
// SPDX-License-Identifier: BSD-3-Clause
#include "protocol.hpp"

namespace overlap::speculative {
namespace {

// Sequence numbers wrap at 2^16; what is more than half of that ahead is behind.
constexpr std::uint16_t sequence_half = 0x8000;

/// A tag that found no room in the paper's policy must stay without an envelope: half of its
/// history would be missing.
Config with_bound_of_policy(Config config) noexcept {
  config.envelopes.may_forget = config.hazard_policy == HazardPolicy::envelope_sequence;
  return config;
}

}  // namespace

Protocol::Protocol(const Config& config, Host& host, Counters& counters)
    : config_(with_bound_of_policy(config)),
      counters_(counters),
      unexpected_(counters),
      streams_(host, config.process, config.speculation, config.held, config.first_agreed),
      hazard_(make_hazard_control(config_.hazard_policy, counters_, config_.envelopes)),
      outbox_(streams_),
      sending_(config_, host, counters_, *hazard_, outbox_),
      receiving_(config_, host, counters_, *hazard_, outbox_, unexpected_) {}

Communicator& Protocol::add_communicator(const NewCommunicator& fresh) {
  Communicator& comm = streams_.add(fresh);
  comm.watch_every_eager = config_.speculation && hazard_->watches_every_eager();
  return comm;
}

const char* Protocol::take_early(Communicator& comm) {
  return admit_again(streams_.take_held(comm));
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
  receiving_.forget(comm);
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

// The network ---------------------------------------------------------------------------

bool Protocol::knows_sender(std::span<const std::byte> message) const noexcept {
  // What names a request of this process comes from where that has sent something to.
  if (is_targeted(kind_of(std::to_integer<std::uint8_t>(message[0])))) return true;
  const auto head = load<SequencedHeader>(behind_prefix(message));
  const Communicator* comm = communicator_of(head);
  const Peer* sender = comm != nullptr ? comm->peer_if_known(head.source) : nullptr;
  return sender != nullptr && sender->host_data != nullptr;
}

Peer* Protocol::sender_of(std::span<const std::byte> message) {
  const auto head = load<SequencedHeader>(behind_prefix(message));
  Communicator* comm = communicator_of(head);
  return comm != nullptr ? &comm->peer(head.source) : nullptr;
}

Communicator* Protocol::communicator_of(const SequencedHeader& head) const noexcept {
  Communicator* comm = streams_.find(head);
  return comm != nullptr && static_cast<std::uint32_t>(head.source) < comm->size() ? comm : nullptr;
}

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
  const Streams::Admission admission =
      streams_.admit(head, with_prefix ? &prefix : nullptr, {whole, rail});
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
    if (const char* fault = on_sequenced(each.message.bytes, each.message.rail)) return fault;
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
    return stash.put(head.sequence, {message, rail})
               ? nullptr
               : "a sequence number that has been seen already";
  if (const char* fault = pass(message, rail)) return fault;
  while (const auto held = stash.take(expected())) {
    if (const char* fault = pass(held->bytes, held->rail)) return fault;
  }
  return nullptr;
}

const char* Protocol::on_forward(Peer& peer, std::span<const std::byte> message, const void* rail) {
  const auto head = load<SequencedHeader>(message);
  const Kind kind = kind_of(head.kind_version);
  if (peer.ended) return "a message behind the end of its stream";
  ++peer.expected_sequence;
  if (kind == Kind::stream_end) {
    receiving_.on_stream_end(peer);
    return nullptr;
  }
  if (kind == Kind::rtr_ack) return receiving_.on_rtr_ack(peer, message);
  if (kind == Kind::revoke_ack) return receiving_.on_revoke_ack(peer, head.tag);
  if (kind == Kind::rts) {
    receiving_.on_rts(peer, message, rail);
  } else {
    receiving_.on_eager(peer, message);
  }
  return nullptr;
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
  if (to_receiver ? receiving_.is_stale(head.target) : sending_.is_stale(head.target)) {
    drop_stale(message);
    return nullptr;
  }
  switch (kind) {
    case Kind::grant: return sending_.on_grant(message, rail);
    case Kind::frag: return receiving_.on_frag(message);
    case Kind::done: return to_receiver ? receiving_.on_done(head) : sending_.on_done(head);
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

}  // namespace overlap::speculative
