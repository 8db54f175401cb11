// Hazard control by message numbers.
#include "envelope_sequence.hpp"

namespace overlap::speculative {

void EnvelopeSequence::eager_sent(Peer& peer, std::int32_t tag) {
  SendEnvelope* envelope = peer.send_envelopes.find(tag);
  if (envelope == nullptr || envelope->kept.empty()) return;
  if (envelope->kept.front().position == envelope->sent) drop_front(peer, *envelope, true);
  ++envelope->sent;
}

Start EnvelopeSequence::rendezvous_starts(Peer& peer, SendEnvelope& envelope,
                                          std::uint64_t length_bytes) {
  Start start;
  if (envelope.kept.empty()) return start;
  const KeptRtr& first = envelope.kept.front();
  if (first.position == envelope.sent) {
    start.use_rtr = fits(first, length_bytes);
    if (start.use_rtr) start.rtr = first;
    drop_front(peer, envelope, !start.use_rtr);
  }
  ++envelope.sent;
  return start;
}

void EnvelopeSequence::rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                                   const RemoteMemory& memory) {
  const std::uint32_t sent_since =
      peer.next_sequence - rtr.base_sequence;  // wraps; more than the ring holds: unknown, too old
  std::uint32_t of_envelope = 0;
  const std::uint32_t known = sent_since <= history_messages ? sent_since : 0;
  for (std::uint32_t i = 0; i < known; ++i) {
    of_envelope +=
        peer.sent_tags[(rtr.base_sequence + i) % history_messages] == rtr.head.tag ? 1 : 0;
  }
  const bool late = sent_since > history_messages || rtr.index < of_envelope;
  if (late) {
    counters_.extra_control_bytes += sizeof(RtrHeader) + memory.key_bytes;
    ++counters_.rtr_stale;
    return;
  }
  if (envelope.kept.empty()) envelope.sent = 0;
  const std::uint32_t position = envelope.sent + (rtr.index - of_envelope);
  keep(peer, envelope, {rtr.receive, rtr.capacity_bytes, position, memory});
}

}  // namespace overlap::speculative
