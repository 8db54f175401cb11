// Messages that cannot be placed yet: of a communicator that does not exist here yet, or of a
// stream whose first message has not come.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "headers.hpp"
#include "incoming_message.hpp"

namespace overlap::speculative {

/// Whose messages these are: the sender's communicator, not only its number.
struct StreamIdentity {
  std::uint16_t context = 0;
  std::uint16_t incarnation = 0;
  std::int32_t source = 0;

  bool operator==(const StreamIdentity&) const = default;
};

[[nodiscard]] constexpr StreamIdentity identity_of(const SequencedHeader& head) noexcept {
  return {head.context, head.incarnation, head.source};
}

/// Most that a process keeps of such messages, over all communicators.
struct HeldBound {
  std::size_t messages_max = 16384;
  std::size_t bytes_max = std::size_t{64} << 20U;
};

/// A bounded store in order of arrival.
class HeldMessages {
 public:
  explicit HeldMessages(HeldBound bound) : bound_(bound) {}

  struct Held {
    StreamIdentity identity;
    KeptMessage message;  ///< the whole, prefix included
  };

  [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return held_.size(); }
  /// Is there room for a message of `bytes`?
  [[nodiscard]] bool fits(std::size_t bytes) const noexcept {
    return held_.size() < bound_.messages_max && held_bytes_ + bytes <= bound_.bytes_max;
  }
  void put(const StreamIdentity& identity, const IncomingMessage& message);
  /// Take out every message that `wanted` says, oldest first.
  template <class Wanted>
  [[nodiscard]] std::vector<Held> take(Wanted&& wanted) {
    std::vector<Held> taken;
    std::deque<Held> left;
    for (Held& each : held_) {
      if (wanted(each.identity)) {
        held_bytes_ -= each.message.bytes.size();
        taken.push_back(std::move(each));
      } else {
        left.push_back(std::move(each));
      }
    }
    held_ = std::move(left);
    return taken;
  }
  /// Throw the oldest message away that `wanted` says. @returns  false when there is none
  template <class Wanted>
  bool drop_oldest(Wanted&& wanted) {
    for (auto each = held_.begin(); each != held_.end(); ++each) {
      if (!wanted(each->identity)) continue;
      held_bytes_ -= each->message.bytes.size();
      held_.erase(each);
      return true;
    }
    return false;
  }

 private:
  HeldBound bound_;
  std::size_t held_bytes_ = 0;
  std::deque<Held> held_;
};

/// The last incarnation known dead of each (context, source), in bounded memory: an entry may be
/// forgotten, which costs that a stale message is held for a while.
class Tombstones {
 public:
  void bury(const StreamIdentity& identity);
  void revive(const StreamIdentity& identity) noexcept;
  [[nodiscard]] bool knows(const StreamIdentity& identity) const noexcept;

 private:
  static constexpr std::size_t graves = 1024;
  [[nodiscard]] static std::size_t slot(const StreamIdentity& identity) noexcept;

  std::vector<StreamIdentity> dead_;  ///< [graves] once used; incarnation 0: empty
};

}  // namespace overlap::speculative
