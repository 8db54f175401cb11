// The peers of a stream, and how far each one is known to be.
// SPDX-License-Identifier: BSD-3-Clause
#include "peer_table.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace overlap::coll_mq {

PeerTable::EdgeIndex PeerTable::edge_to(Rank peer) {
  const auto place =
      std::lower_bound(by_peer_.begin(), by_peer_.end(), peer,
                       [&](EdgeIndex edge, Rank wanted) { return peers_[edge] < wanted; });
  if (place != by_peer_.end() && peers_[*place] == peer) return *place;
  if (peers_.size() >= std::numeric_limits<EdgeIndex>::max())
    throw std::length_error("coll/mq: too many peers in a stream");
  const auto edge = static_cast<EdgeIndex>(peers_.size());
  by_peer_.insert(place, edge);
  peers_.push_back(peer);
  edges_.push_back({first_, false, false, {}});
  return edge;
}

PeerTable::Leave PeerTable::ask_leave(EdgeIndex edge, Sequence sequence, Sequence own_oldest) {
  Edge& to = edges_[edge];
  const auto ahead = sequence - to.oldest;
  const auto window = static_cast<std::int32_t>(window_);
  const std::int32_t far = std::max(window / 2, 1);
  if (ahead >= far && !to.asked) {
    to.asked = true;
    // News for which the peer need not wait for this rank: a later collective asks, and an earlier
    // one may have to send to that peer before the later one can end.
    const Sequence news = to.oldest + 1;
    controls_.push({MessageKind::ask, edge, own_oldest - news > 0 ? own_oldest : news});
  }
  return ahead < window ? Leave::granted : Leave::too_far_ahead;
}

bool PeerTable::note_oldest(EdgeIndex edge, Sequence oldest) {
  Edge& from = edges_[edge];
  if (oldest - from.oldest <= 0) return false;
  from.oldest = oldest;
  from.asked = false;
  return true;
}

void PeerTable::note_ask(EdgeIndex edge, Sequence sequence, Sequence own_oldest) {
  Edge& from = edges_[edge];
  if (own_oldest - sequence >= 0) {
    controls_.push({MessageKind::tell, edge, own_oldest});
    return;
  }
  if (!from.asks) ++askers_;
  from.asks = true;
  from.wanted = sequence;
}

void PeerTable::tell_askers(Sequence own_oldest) {
  if (askers_ == 0) return;
  for (std::size_t edge = 0; edge < edges_.size(); ++edge) {
    Edge& asker = edges_[edge];
    if (!asker.asks || own_oldest - asker.wanted < 0) continue;
    asker.asks = false;
    --askers_;
    controls_.push({MessageKind::tell, static_cast<EdgeIndex>(edge), own_oldest});
  }
}

std::optional<PeerTable::Control> PeerTable::take_control() {
  if (controls_.empty()) return std::nullopt;
  const Control control = controls_.front();
  controls_.pop();
  return control;
}

void PeerTable::room() {
  for (const Control& control : stalled_) controls_.push(control);
  stalled_.clear();
}

}  // namespace overlap::coll_mq
