// Messages of one stream that came before their turn.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>

#include "incoming_message.hpp"

namespace overlap::speculative {

/// One pointer while empty. At most 2^15 messages: what is further ahead is behind.
class Stash {
 public:
  [[nodiscard]] bool empty() const noexcept { return held_ == nullptr; }
  /// @returns  false when that message is here already
  [[nodiscard]] bool put(std::uint16_t sequence, const IncomingMessage& message) {
    if (held_ == nullptr) held_ = std::make_unique<Map>();
    return held_->try_emplace(sequence, message).second;
  }
  [[nodiscard]] std::optional<KeptMessage> take(std::uint16_t sequence) {
    if (held_ == nullptr) return std::nullopt;
    auto found = held_->extract(sequence);
    if (found.empty()) return std::nullopt;
    if (held_->empty()) held_ = nullptr;
    return std::move(found.mapped());
  }

 private:
  using Map = std::map<std::uint16_t, KeptMessage>;
  std::unique_ptr<Map> held_;
};

}  // namespace overlap::speculative
