// What both hazard policies share: the RTRs kept at a sender.
// SPDX-License-Identifier: BSD-3-Clause
#include "hazard_control.hpp"

#include "eager_flag.hpp"
#include "envelope_sequence.hpp"

namespace overlap::speculative {

bool HazardControl::keep(Peer& peer, SendEnvelope& envelope, const KeptRtr& rtr) {
  if (kept_ >= bound_.kept_rtrs_max) {
    ++counters_.rtr_dropped;
    counters_.extra_control_bytes += sizeof(RtrHeader) + rtr.memory.key_bytes;
    return false;
  }
  ++kept_;
  envelope.kept.push_back(rtr);
  ++peer.kept_rtrs;
  peer.watch_eager = true;
  return true;
}

void HazardControl::drop_front(Peer& peer, SendEnvelope& envelope, bool wasted) {
  if (wasted) {
    ++counters_.rtr_dropped;
    counters_.extra_control_bytes += sizeof(RtrHeader) + envelope.kept.front().memory.key_bytes;
  }
  envelope.kept.pop_front();
  --kept_;
  if (--peer.kept_rtrs == 0 && !watches_every_eager()) peer.watch_eager = false;
}

void HazardControl::drop_kept(Peer& peer, SendEnvelope& envelope) {
  while (!envelope.kept.empty()) drop_front(peer, envelope, true);
}

std::unique_ptr<HazardControl> make_hazard_control(HazardPolicy policy, Counters& counters,
                                                   EnvelopeBound bound) {
  switch (policy) {
    case HazardPolicy::envelope_sequence:
      return std::make_unique<EnvelopeSequence>(counters, bound);
    case HazardPolicy::eager_flag: return std::make_unique<EagerFlag>(counters, bound);
  }
  return nullptr;
}

}  // namespace overlap::speculative
