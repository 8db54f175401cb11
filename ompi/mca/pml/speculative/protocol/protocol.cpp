// Communicators that come and go, and what callers ask before they poll.
// SPDX-License-Identifier: BSD-3-Clause
#include "protocol.hpp"

namespace overlap::speculative {
namespace {

/// A tag that found no room in the paper's policy must stay without an envelope: half of its
/// history would be missing.
Config with_bound_of_policy(Config config) noexcept {
  config.envelopes.may_forget = config.hazard_policy == HazardPolicy::envelope_sequence;
  return config;
}

}  // namespace

Protocol::Protocol(const Config& config, Host& host, Counters& counters)
    : config_(with_bound_of_policy(config)),
      host_(host),
      counters_(counters),
      unexpected_(counters),
      streams_(host, config.process, config.speculation, config.held),
      hazard_(make_hazard_control(config_.hazard_policy, counters_, config_.envelopes)),
      outbox_(streams_),
      sending_(config_, host_, counters_, *hazard_, outbox_),
      machine_(config.hazard_policy, counters_, outbox_),
      offers_(config_, counters_, *hazard_, outbox_, machine_),
      cancellation_(host_, unexpected_, machine_, offers_) {}

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
  cancellation_.forget(comm);
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

}  // namespace overlap::speculative
