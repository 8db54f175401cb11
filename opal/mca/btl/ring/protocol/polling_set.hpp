// Which peers send through rings, and in which order their rings are looked at (P2.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "receive_ring.hpp"
#include "stream.hpp"

namespace overlap::ring {

enum class SetPolicy : std::uint8_t {
  first,    ///< the first ones to send stay
  traffic,  ///< the first ones to send, and later the busiest
};
enum class PollOrder : std::uint8_t {
  sequential,  ///< in the order of joining
  circular,    ///< the same, but each pass begins elsewhere
  recent,      ///< the most recently active first
};

/// Chooses members and visits them. Numbers of peers are small and dense: the set keeps an index of
/// 8 bytes for each up to the largest one seen. At most `capacity` peers are members, asked to
/// join, or leaving; one that takes a leaving one's place comes on top.
class PollingSet {
 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  /// @param capacity  0: nobody ever joins
  /// @param review_messages  the set is reviewed every so many messages, at least 1
  PollingSet(std::uint32_t capacity, SetPolicy policy, PollOrder order,
             std::uint32_t review_messages);

  /// What the caller should do; numbers of peers.
  struct Change {
    std::uint32_t add = none;  ///< open a ring for it, then added(); or refused()
    std::uint32_t remove =
        none;  ///< close its ring; removed() when that has ended, until then it is visited
  };
  /// A message from this peer has arrived. A newcomer takes the place of the weakest member only
  /// with twice its traffic, and only one change of that kind is under way at a time, so that two
  /// peers of equal traffic do not take turns.
  [[nodiscard]] Change on_message(std::uint32_t peer, Channel channel) noexcept {
    if (peer >= peers_.size() && !learn(peer)) return {};
    Peer& known = peers_[peer];
    if (known.epoch != epoch_) age(known);
    ++known.messages;
    Change change;
    if (channel == Channel::send_receive && known.state == State::outside)
      change = consider(peer, known);
    if (++since_review_ >= review_messages_) [[unlikely]]
      review(change);
    return change;
  }

  /// The ring of this peer is open.
  /// @param ring  stays where it is until removed(); the set looks at its head itself and visits
  /// the peer only when something is there.
  ///   nullptr: the peer is visited each time
  void added(std::uint32_t peer, const ReceiveRing* ring = nullptr);
  /// The ring of this peer is gone. Legal from within for_each().
  void removed(std::uint32_t peer) noexcept;
  /// No ring could be opened for this peer: do not ask again before the next review.
  void refused(std::uint32_t peer) noexcept;

  /// The same for a peer whose ring is gone because the peer has no use for it.
  void declined(std::uint32_t peer) noexcept;

  [[nodiscard]] bool contains(std::uint32_t peer) const noexcept {
    return peer < peers_.size() &&
           (peers_[peer].state == State::member || peers_[peer].state == State::leaving);
  }
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(members_.size()) - holes_;
  }

  /// Visit the members in the poll order; each once, but for changes made by `visit` itself, which
  /// may call anything here.
  /// @param visit  visit(peer) -> number of messages taken; must not throw
  /// @returns  messages taken
  template <class Visit>
  std::uint32_t for_each(Visit&& visit) {
    const auto begin =
        order_ == PollOrder::circular && cursor_ < members_.size() ? cursor_ : std::size_t{0};
    if (order_ == PollOrder::circular) cursor_ = begin + 1;
    ++depth_;
    std::uint32_t taken = scan(begin, members_.size(), visit);
    if (begin != 0) taken += scan(0, begin, visit);
    if (--depth_ == 0 && holes_ != 0) [[unlikely]]
      compact();
    return taken;
  }

 private:
  enum class State : std::uint8_t { outside, asked, refused, member, leaving };
  struct Peer {
    std::uint32_t messages = 0;  ///< halved at each review, when it is looked at next
    std::uint16_t epoch = 0;     ///< number of the review up to which that was done
    State state = State::outside;
  };
  static_assert(sizeof(Peer) == 8);
  /// Four to a line, so that a pass reads little besides the flags. Where no ring is known,
  /// head_address leads to a flag that is always set; in a hole to one that never is.
  struct Member {
    const std::byte* const* head_address;
    std::uint32_t peer;
  };

  /// @returns  messages taken
  template <class Visit>
  std::uint32_t scan(std::size_t begin, std::size_t end, Visit& visit) {
    std::uint32_t all = 0;
    for (std::size_t i = begin; i < end && i < members_.size(); ++i) {
      const auto* const flag = reinterpret_cast<const std::uint8_t*>(*members_[i].head_address);
      if (__atomic_load_n(flag, __ATOMIC_RELAXED) == flag_value::empty) [[likely]]
        continue;  // peek() orders what follows
      const std::uint32_t peer = members_[i].peer;
      const std::uint32_t taken = visit(peer);
      if (taken == 0) continue;
      if (order_ == PollOrder::recent && i != 0) move_to_front(i, peer);
      all += taken;
    }
    return all;
  }

  [[nodiscard]] bool learn(std::uint32_t peer) noexcept;
  void age(Peer& known) noexcept;
  [[nodiscard]] Change consider(std::uint32_t peer, Peer& known) noexcept;
  void review(Change& change) noexcept;
  void move_to_front(std::size_t index, std::uint32_t peer) noexcept;
  void compact() noexcept;

  std::vector<Member> members_;  ///< in the poll order
  std::size_t cursor_ = 0;       ///< where a circular pass begins
  std::uint32_t depth_ = 0;      ///< for_each() under way, one inside the other
  std::uint32_t holes_ = 0;      ///< members removed meanwhile; taken out when none is under way
  PollOrder order_;
  SetPolicy policy_;
  std::uint32_t capacity_;
  std::uint32_t review_messages_;
  std::uint32_t since_review_ = 0;
  std::uint16_t epoch_ = 0;
  std::uint32_t asked_ = 0;
  std::uint32_t leaving_ = 0;
  std::uint32_t newcomer_ = none;  ///< the busiest one outside since the last review
  std::uint32_t newcomer_messages_ = 0;
  std::vector<Peer> peers_;  ///< [peer]
};

}  // namespace overlap::ring
