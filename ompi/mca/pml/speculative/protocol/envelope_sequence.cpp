// Hazard control by message numbers.
// SPDX-License-Identifier: BSD-3-Clause
#include "envelope_sequence.hpp"

namespace overlap::speculative {

void EnvelopeSequence::eager_sent(Peer& peer, std::int32_t tag) {
  SendEnvelope* envelope = peer.send_envelopes.find(tag);
  if (envelope == nullptr || envelope->kept.empty()) return;
  if (envelope->kept.front().position == envelope->sent) drop_front(peer, *envelope, true);
  ++envelope->sent;
}

Start EnvelopeSequence::rendezvous_starts(Peer& peer, SendEnvelope& envelope, const SendOp& op) {
  Start start;
  if (envelope.kept.empty()) return start;
  const KeptRtr& first = envelope.kept.front();
  if (first.position == envelope.sent) {
    start.use_rtr = fits(first, op);
    if (start.use_rtr) start.rtr = first;
    drop_front(peer, envelope, !start.use_rtr);
  }
  ++envelope.sent;
  return start;
}

void EnvelopeSequence::rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                                   const RemoteMemory& memory) {
  const auto of_envelope =
      peer.sent_tags.count(rtr.head.tag, rtr.base_sequence, peer.next_sequence);
  peer.sent_tags.start(peer.next_sequence);
  if (!of_envelope || rtr.index < *of_envelope) {
    counters_.extra_control_bytes += sizeof(RtrHeader) + memory.key_bytes;
    ++counters_.rtr_stale;
    return;
  }
  if (envelope.kept.empty()) envelope.sent = 0;
  const std::uint32_t position = envelope.sent + (rtr.index - *of_envelope);
  (void)keep(peer, envelope, {rtr.receive, rtr.capacity_bytes, position, memory});
}

}  // namespace overlap::speculative
