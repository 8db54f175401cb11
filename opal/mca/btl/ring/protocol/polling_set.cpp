// Joining and leaving the polling set.
// SPDX-License-Identifier: BSD-3-Clause
#include "polling_set.hpp"

#include <algorithm>

namespace overlap::ring {

namespace {

constexpr std::byte always_set{flag_value::primary};
constexpr std::byte never_set{flag_value::empty};
constexpr const std::byte* to_visit = &always_set;
constexpr const std::byte* to_skip = &never_set;

}  // namespace

PollingSet::PollingSet(std::uint32_t capacity, SetPolicy policy, PollOrder order,
                       std::uint32_t review_messages)
    : order_(order), policy_(policy), capacity_(capacity), review_messages_(review_messages) {
  members_.reserve(std::size_t{capacity} + 1);
}

bool PollingSet::learn(std::uint32_t peer) noexcept {
  try {
    peers_.resize(std::max<std::size_t>(std::size_t{peer} + 1, peers_.size() * 2));
    return true;
  } catch (...) {  // no memory: then this peer does not join
    return false;
  }
}

/// Bring a peer's count to the present: half of it is forgotten at each review.
void PollingSet::age(Peer& known) noexcept {
  const auto reviews = static_cast<std::uint16_t>(epoch_ - known.epoch);
  known.messages = reviews < 32 ? known.messages >> reviews : 0;
  known.epoch = epoch_;
  if (known.state == State::refused) known.state = State::outside;
}

/// A message through the channel, from a peer that has no ring.
PollingSet::Change PollingSet::consider(std::uint32_t peer, Peer& known) noexcept {
  if (size() + asked_ < capacity_) {
    known.state = State::asked;
    ++asked_;
    return {.add = peer};
  }
  if (known.messages > newcomer_messages_) {
    newcomer_ = peer;
    newcomer_messages_ = known.messages;
  }
  return {};
}

void PollingSet::review(Change& change) noexcept {
  since_review_ = 0;
  const std::uint32_t newcomer = newcomer_;
  const std::uint32_t newcomer_messages = newcomer_messages_;
  newcomer_ = none;
  newcomer_messages_ = 0;
  std::uint32_t weakest = none;
  std::uint32_t weakest_messages = UINT32_MAX;
  for (const Member& member : members_) {
    if (member.peer == none) continue;
    Peer& known = peers_[member.peer];
    age(known);
    if (known.state != State::member || known.messages >= weakest_messages) continue;
    weakest = member.peer;
    weakest_messages = known.messages;
  }
  ++epoch_;
  if (policy_ != SetPolicy::traffic || change.add != none || leaving_ != 0 || weakest == none ||
      newcomer == none)
    return;
  if (peers_[newcomer].state != State::outside) return;
  if (newcomer_messages / 2 < std::max(weakest_messages, 1U)) return;
  peers_[newcomer].state = State::asked;
  ++asked_;
  peers_[weakest].state = State::leaving;
  ++leaving_;
  change = {.add = newcomer, .remove = weakest};
}

void PollingSet::added(std::uint32_t peer, const ReceiveRing* ring) {
  if (peer >= peers_.size()) peers_.resize(std::size_t{peer} + 1);
  if (contains(peer)) return;
  members_.push_back({ring != nullptr ? ring->head_address() : &to_visit, peer});
  if (peers_[peer].state == State::asked) --asked_;
  peers_[peer].state = State::member;
}

void PollingSet::removed(std::uint32_t peer) noexcept {
  if (!contains(peer)) return;
  if (peers_[peer].state == State::leaving) --leaving_;
  peers_[peer].state = State::outside;
  const auto at = std::find_if(members_.begin(), members_.end(),
                               [peer](const Member& member) { return member.peer == peer; });
  *at = {&to_skip, none};
  ++holes_;
  if (depth_ == 0) compact();
}

void PollingSet::refused(std::uint32_t peer) noexcept {
  if (peer >= peers_.size() || peers_[peer].state != State::asked) return;
  --asked_;
  peers_[peer].state = State::refused;
  peers_[peer].epoch = epoch_;
}

void PollingSet::declined(std::uint32_t peer) noexcept {
  if (peer >= peers_.size() || peers_[peer].state != State::outside) return;
  peers_[peer].state = State::refused;
  peers_[peer].epoch = epoch_;
}

void PollingSet::move_to_front(std::size_t index, std::uint32_t peer) noexcept {
  if (index >= members_.size() || members_[index].peer != peer)
    return;  // `visit` has changed the set
  const auto begin = members_.begin();
  const auto at = begin + static_cast<std::ptrdiff_t>(index);
  std::rotate(begin, at, at + 1);
}

/// Only when no pass is under way: indices change.
void PollingSet::compact() noexcept {
  std::erase_if(members_, [](const Member& member) { return member.peer == none; });
  holes_ = 0;
}

}  // namespace overlap::ring
