// Which messages of one collective have come in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace overlap::coll_mq {

namespace model {
struct Digest;  ///< for tests: sees states
}

/// Counts the messages of each edge, whatever order they come in.
class Arrivals {
 public:
  /// @returns  false: it is here already
  bool note(std::uint16_t edge, std::uint16_t step) {
    if (edge >= seen_.size()) seen_.resize(edge + std::size_t{1});
    if (step < seen_[edge]) return false;
    if (step > seen_[edge]) {
      if (std::find(early_.begin(), early_.end(), Early{edge, step}) != early_.end()) return false;
      early_.push_back({edge, step});
      return true;
    }
    // It may have been the gap before others.
    do {
      ++seen_[edge];
    } while (!early_.empty() && take_early({edge, static_cast<std::uint16_t>(seen_[edge])}));
    return true;
  }
  /// Are the first `count` messages of the edge here?
  [[nodiscard]] bool has(std::uint16_t edge, std::uint32_t count) const noexcept {
    return edge < seen_.size() ? seen_[edge] >= count : count == 0;
  }
  /// Has none come that the collective does not expect?
  /// @param expected  of an edge: how many messages
  template <class Expected>
  [[nodiscard]] bool are_all(const Expected& expected) const {
    for (std::size_t edge = 0; edge < seen_.size(); ++edge)
      if (seen_[edge] > expected(edge)) return false;
    return std::all_of(early_.begin(), early_.end(),
                       [&](Early one) { return one.step < expected(one.edge); });
  }
  void clear() noexcept {
    std::fill(seen_.begin(), seen_.end(), 0);
    early_.clear();
  }

 private:
  friend struct model::Digest;
  struct Early {
    std::uint16_t edge = 0;
    std::uint16_t step = 0;
    [[nodiscard]] bool operator==(const Early&) const noexcept = default;
  };

  bool take_early(Early one) noexcept {
    const auto found = std::find(early_.begin(), early_.end(), one);
    if (found == early_.end()) return false;
    *found = early_.back();
    early_.pop_back();
    return true;
  }

  std::vector<std::uint32_t> seen_;  ///< [edge]: messages 0 to seen - 1 are here
  std::vector<Early> early_;         ///< those that are here beyond
};

}  // namespace overlap::coll_mq
