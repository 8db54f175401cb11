// All peers of a process, most of which it never talks to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace overlap::ring {

/// Peers by number and by key. Besides the peer itself one costs two pointers, and as much again
/// while the vectors have room to grow.
/// @tparam Peer  has key(), a pointer, and number(), which is given to it here
template <class Peer>
class PeerTable {
 public:
  using Key = decltype(std::declval<const Peer&>().key());

  /// Number of the next one.
  [[nodiscard]] std::uint32_t next_number() const noexcept {
    return static_cast<std::uint32_t>(by_number_.size());
  }
  /// @param peer  with next_number() and a key that no other one has
  Peer& add(std::unique_ptr<Peer> peer) {
    by_key_.insert(place_of(peer->key()), peer.get());
    try {
      by_number_.push_back(std::move(peer));
    } catch (...) {
      by_key_.erase(place_of(peer->key()));
      throw;
    }
    return *by_number_.back();
  }
  void erase(Peer& peer) noexcept {
    by_key_.erase(place_of(peer.key()));
    by_number_[peer.number()].reset();
  }
  /// @returns  nullptr where there is none (any more)
  [[nodiscard]] Peer* find(Key key) const noexcept {
    const auto at = place_of(key);
    return at != by_key_.end() && (*at)->key() == key ? *at : nullptr;
  }
  [[nodiscard]] Peer* at(std::uint32_t number) const noexcept {
    return number < by_number_.size() ? by_number_[number].get() : nullptr;
  }
  /// In no order; add() and erase() end it.
  [[nodiscard]] std::span<Peer* const> all() const noexcept { return by_key_; }

 private:
  [[nodiscard]] auto place_of(Key key) const noexcept {
    return std::lower_bound(by_key_.begin(), by_key_.end(), key, [](const Peer* peer, Key wanted) {
      return std::less<Key>()(peer->key(), wanted);
    });
  }

  std::vector<std::unique_ptr<Peer>> by_number_;  ///< empty where one was erased
  std::vector<Peer*> by_key_;                     ///< in its order
};

}  // namespace overlap::ring
