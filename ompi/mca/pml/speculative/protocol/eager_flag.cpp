// The paper's hazard control.
// SPDX-License-Identifier: BSD-3-Clause
#include "eager_flag.hpp"

namespace overlap::speculative {

void EagerFlag::eager_sent(Peer& peer, std::int32_t tag) {
  SendEnvelope* envelope = peer.send_envelopes.get(tag, bound_);
  // No room: RTRs of this tag find no envelope either and are never used.
  if (envelope == nullptr) return;
  // While drained or draining no receive that is still to come sends an RTR; the flag is for what
  // follows a resume.
  if (envelope->phase != SendEnvelope::Phase::open) return;
  envelope->eager_flag = true;
  drop_kept(peer, *envelope);  // the next rendezvous would: nothing piles up until then (P1.9)
}

Start EagerFlag::rendezvous_starts(Peer& peer, SendEnvelope& envelope, const SendOp& op) {
  Start start;
  start.epoch = envelope.hazard_epoch;
  switch (envelope.phase) {
    case SendEnvelope::Phase::draining: return start;
    case SendEnvelope::Phase::drained:
      envelope.phase = SendEnvelope::Phase::open;
      start.flags = flag::hazard_resume;
      ++counters_.eager_flag_resumes;
      ++envelope.awaiting_rtrs;
      return start;
    case SendEnvelope::Phase::open: break;
  }
  if (envelope.eager_flag) {
    envelope.phase = SendEnvelope::Phase::draining;
    start.flags = flag::hazard_stop;
    ++counters_.eager_flag_stops;
    return start;
  }
  if (!envelope.kept.empty()) {
    const KeptRtr& first = envelope.kept.front();
    start.use_rtr = fits(first, op);
    if (start.use_rtr) start.rtr = first;
    drop_front(peer, envelope, !start.use_rtr);
    return start;  // too small: an RTS whose receive has sent its RTR already, nothing more is
                   // awaited
  }
  ++envelope.awaiting_rtrs;
  return start;
}

void EagerFlag::rtr_arrived(Peer& peer, SendEnvelope& envelope, const RtrHeader& rtr,
                            const RemoteMemory& memory) {
  if (envelope.phase != SendEnvelope::Phase::open || envelope.eager_flag) {
    ++counters_.rtr_dropped;
    waste(rtr, memory);
    return;
  }
  if (envelope.awaiting_rtrs > 0) {
    --envelope.awaiting_rtrs;
    ++counters_.rtr_crossed;
    waste(rtr, memory);
    return;
  }
  if (keep(peer, envelope, {rtr.receive, rtr.capacity_bytes, 0, memory})) return;
  // One is missing: the count is broken as by an eager message.
  envelope.eager_flag = true;
  drop_kept(peer, envelope);
}

void EagerFlag::rts_ack_arrived(Peer& peer, SendEnvelope& envelope, const RtsAckHeader& ack) {
  if (ack.hazard_epoch != envelope.hazard_epoch) return;
  if ((ack.head.flags & flag::hazard_stop) != 0) {
    drop_kept(peer, envelope);
    envelope.phase = SendEnvelope::Phase::drained;
    envelope.eager_flag = false;
    envelope.awaiting_rtrs = 0;
    ++envelope.hazard_epoch;
    return;
  }
  if (envelope.awaiting_rtrs > 0) --envelope.awaiting_rtrs;
}

void EagerFlag::rts_arrived(ReceiveEnvelope& envelope, std::uint8_t flags) {
  if ((flags & flag::hazard_stop) != 0) envelope.hazard_stopped = true;
  if ((flags & flag::hazard_resume) != 0) envelope.hazard_stopped = false;
}

bool EagerFlag::wants_rts_ack(std::uint8_t rts_flags, bool rtr_out) const {
  return !rtr_out || (rts_flags & flag::hazard_stop) != 0;
}

void EagerFlag::waste(const RtrHeader& rtr, const RemoteMemory& memory) {
  counters_.extra_control_bytes += sizeof rtr + memory.key_bytes;
}

}  // namespace overlap::speculative
