// The order of messages between two ranks of a window.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace overlap::newrma {

/// Keeps what comes before its turn. A BTL may deliver two messages of a process in another order
/// than they were sent in, and one while another is being handled, which sends answers.
class MessageOrder {
 public:
  /// @returns  true: it is this message's turn, and take_next() follows until it has nothing;
  ///           false: kept (or here already)
  [[nodiscard]] bool is_next(std::uint32_t sequence, std::span<const std::byte> message) {
    if (sequence == next_ && !handling_) {
      ++next_;
      return handling_ = true;
    }
    if (static_cast<std::int32_t>(sequence - next_) >= 0)
      kept_.try_emplace(sequence, message.begin(), message.end());
    return false;
  }
  /// @returns  the message whose turn it is now, if it was kept
  [[nodiscard]] std::optional<std::vector<std::byte>> take_next() {
    auto found = kept_.extract(next_);
    handling_ = !found.empty();
    if (!handling_) return std::nullopt;
    ++next_;
    return std::move(found.mapped());
  }

 private:
  std::uint32_t next_ = 0;
  bool handling_ = false;
  std::map<std::uint32_t, std::vector<std::byte>> kept_;
};

}  // namespace overlap::newrma
