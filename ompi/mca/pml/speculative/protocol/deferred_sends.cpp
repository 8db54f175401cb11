// Which send waits a little for an RTR, and what comes of it.
// SPDX-License-Identifier: BSD-3-Clause
#include "deferred_sends.hpp"

#include <algorithm>

namespace overlap::speculative {

bool DeferredSends::try_put(SendOp& op) {
  Peer& peer = *op.peer;
  const SendEnvelope* envelope = peer.send_envelopes.find(op.tag);
  if (envelope == nullptr || peer.ended || envelope->adaptation.stopped) return false;
  if (!envelope->kept.empty() || op.synchronous) return false;  // it might not use one (fits)
  const std::uint64_t wait_ns = envelope->patience.wait_ns(rules_, op.length_bytes);
  if (wait_ns == 0) return false;
  op.started_ns = now_ns_;
  op.decide_ns = now_ns_ + wait_ns;
  sends_.push_back(&op);
  peer.defers = true;
  ++counters_.rtr_awaited;
  return true;
}

template <class Wanted>
SendOp* DeferredSends::take_first(Wanted&& wanted) {
  const auto found = std::find_if(sends_.begin(), sends_.end(), wanted);
  if (found == sends_.end()) return nullptr;
  SendOp* op = *found;
  sends_.erase(found);
  op->peer->defers = false;
  note_outcome(*op);
  return op;
}

void DeferredSends::note_outcome(const SendOp& op) noexcept {
  SendEnvelope* envelope = op.peer->send_envelopes.find(op.tag);
  if (envelope == nullptr) return;
  if (!envelope->kept.empty()) {
    ++counters_.rtr_awaited_in_time;
  } else if (now_ns_ >= op.decide_ns) {
    envelope->patience.in_vain(rules_);
  }
}

SendOp* DeferredSends::take_expired() {
  return take_first([this](const SendOp* op) { return op->decide_ns <= now_ns_; });
}

SendOp* DeferredSends::take(const Peer& peer) {
  return take_first([&peer](const SendOp* op) { return op->peer == &peer; });
}

SendOp* DeferredSends::take_met(const Peer& peer, SendEnvelope& envelope) {
  if (envelope.kept.empty()) {  // too late for its message: it has crossed it
    envelope.patience.crossed();
    return nullptr;
  }
  if (!peer.defers) return nullptr;
  SendOp* op = take_first(
      [&](const SendOp* each) { return each->peer == &peer && each->tag == envelope.tag; });
  if (op != nullptr)
    envelope.patience.came(now_ns_ > op->started_ns ? now_ns_ - op->started_ns : 1);
  return op;
}

}  // namespace overlap::speculative
