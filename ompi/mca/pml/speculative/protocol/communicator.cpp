// Posted and unexpected queues of a communicator.
// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

namespace overlap::speculative {

Communicator::Communicator(std::uint16_t context_id, std::int32_t rank, std::size_t size,
                           std::uint16_t incarnation_number)
    : context(context_id),
      incarnation(incarnation_number),
      incarnation_is_agreed(incarnation_number == 0),
      my_rank(rank),
      peers_(size, nullptr) {}

Communicator::~Communicator() {
  for (Peer* peer : peers_) {
    if (peer == nullptr) continue;
    while (Arrived* left = peer->unexpected.any()) {
      take(*left);
      Arrived::destroy(left);
    }
    delete peer;
  }
}

Peer& Communicator::make_peer(std::int32_t rank) {
  auto* peer = new Peer;
  peer->comm = this;
  peer->rank = rank;
  if (incarnation_is_agreed) peer->bound = incarnation;
  peer->watch_eager = watch_every_eager;
  peer->speculates = speculates;
  peers_[static_cast<std::size_t>(rank)] = peer;
  return *peer;
}

void Communicator::post_wild(ReceiveOp& op) {
  ++wild_receives;
  if (op.source != any_source) {
    op.peer = &peer(op.source);
    op.peer->posted_any_tag.push_back(op);
  } else if (op.tag != any_tag) {
    posted_any_source_.insert(op);
  } else {
    posted_any_.push_back(op);
  }
}

void Communicator::unpost_wild(ReceiveOp& op) noexcept {
  --wild_receives;
  if (op.source == any_source && op.tag != any_tag) {
    posted_any_source_.remove(op);
  } else {
    List<ReceiveOp, &ReceiveOp::link>::remove(op);
  }
}

ReceiveOp* Communicator::find_posted_wild(Peer& peer, std::int32_t tag, ReceiveOp* best) noexcept {
  const auto consider = [&best](ReceiveOp* candidate) {
    if (candidate != nullptr && (best == nullptr || candidate->order < best->order))
      best = candidate;
  };
  consider(posted_any_source_.find(tag));
  if (tag >= 0) {
    consider(peer.posted_any_tag.front());
    consider(posted_any_.front());
  }
  return best;
}

void Communicator::store(Arrived& arrived) {
  Peer& from = *arrived.peer;
  from.unexpected.insert(arrived);
  unexpected_by_tag_.insert(arrived);
  if (arrived.tag >= 0) {
    from.unexpected_order.push_back(arrived);
    unexpected_order_.push_back(arrived);
  }
  ++unexpected_count;
}

void Communicator::take(Arrived& arrived) noexcept {
  Peer& from = *arrived.peer;
  from.unexpected.remove(arrived);
  unexpected_by_tag_.remove(arrived);
  if (arrived.tag >= 0) {
    List<Arrived, &Arrived::by_peer>::remove(arrived);
    List<Arrived, &Arrived::any>::remove(arrived);
  }
  --unexpected_count;
}

Arrived* Communicator::find_among_unexpected(std::int32_t source, std::int32_t tag) noexcept {
  if (source == any_source)
    return tag == any_tag ? unexpected_order_.front() : unexpected_by_tag_.find(tag);
  Peer* from = peer_if_known(source);
  if (from == nullptr) return nullptr;
  return tag == any_tag ? from->unexpected_order.front() : from->unexpected.find(tag);
}

}  // namespace overlap::speculative
