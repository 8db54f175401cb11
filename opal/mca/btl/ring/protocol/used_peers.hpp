// The peers that a process talks to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace overlap::ring {

/// Peers that are talked to, by number. One costs a pointer, and so does each number below the
/// largest.
template <class Peer>
class UsedPeers {
 public:
  void add(std::uint32_t number, Peer& peer) {
    if (number >= by_number_.size()) by_number_.resize(number + std::size_t{1});
    by_number_[number] = &peer;
  }
  void erase(std::uint32_t number) noexcept {
    if (number < by_number_.size()) by_number_[number] = nullptr;
  }
  /// @returns  nullptr where there is none (any more)
  [[nodiscard]] Peer* at(std::uint32_t number) const noexcept {
    return number < by_number_.size() ? by_number_[number] : nullptr;
  }
  /// With nullptr where there is none; add() ends it.
  [[nodiscard]] const std::vector<Peer*>& by_number() const noexcept { return by_number_; }

 private:
  std::vector<Peer*> by_number_;
};

}  // namespace overlap::ring
