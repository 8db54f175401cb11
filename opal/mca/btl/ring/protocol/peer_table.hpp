// All peers of a process, most of which it never talks to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace overlap::ring {

/// Peers by key. Besides the peer itself one costs a pointer, and as much again while the vector
/// has room to grow.
/// @tparam Peer  has key(), a pointer, and number(), which is given to it here, once
template <class Peer>
class PeerTable {
 public:
  using Key = decltype(std::declval<const Peer&>().key());

  /// Number of the next one.
  [[nodiscard]] std::uint32_t next_number() const noexcept { return next_number_; }
  /// @param peer  with next_number() and a key that no other one has
  Peer& add(std::unique_ptr<Peer> peer) {
    Peer& added = **by_key_.insert(place_of(peer->key()), std::move(peer));
    ++next_number_;
    return added;
  }
  [[nodiscard]] std::unique_ptr<Peer> take(const Peer& peer) noexcept {
    const auto at = by_key_.begin() + (place_of(peer.key()) - by_key_.cbegin());
    std::unique_ptr<Peer> taken = std::move(*at);
    by_key_.erase(at);
    return taken;
  }
  /// @returns  nullptr where there is none (any more)
  [[nodiscard]] Peer* find(Key key) const noexcept {
    const auto at = place_of(key);
    return at != by_key_.end() && (*at)->key() == key ? at->get() : nullptr;
  }

 private:
  [[nodiscard]] auto place_of(Key key) const noexcept {
    return std::lower_bound(by_key_.begin(), by_key_.end(), key,
                            [](const std::unique_ptr<Peer>& peer, Key wanted) {
                              return std::less<Key>()(peer->key(), wanted);
                            });
  }

  std::vector<std::unique_ptr<Peer>> by_key_;  ///< in its order
  std::uint32_t next_number_ = 0;
};

}  // namespace overlap::ring
