// Messages that come in parts, because a BTL takes so many bytes at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

#include "message_head.hpp"

namespace overlap::coll_mq {

/// Puts the parts of messages together, in whatever order they come.
class PartialMessages {
 public:
  /// Is a part one that can be: inside its message, and not the whole of it?
  [[nodiscard]] static bool is_sound(const MessageHead& head, std::size_t part_bytes) noexcept {
    return part_bytes > 0 && part_bytes < head.bytes && head.offset <= head.bytes - part_bytes;
  }
  /// @param part  sound; a message's parts do not overlap
  /// @returns  the whole payload, with the last part
  [[nodiscard]] std::optional<std::vector<std::byte>> add(const MessageHead& head,
                                                          std::span<const std::byte> part) {
    const Key key{head.source, head.sequence, head.step};
    Partial& partial = all_[key];
    partial.payload.resize(std::max<std::size_t>(partial.payload.size(), head.bytes));
    std::ranges::copy(part, partial.payload.begin() + head.offset);
    partial.here_bytes += part.size();
    if (partial.here_bytes < head.bytes) return std::nullopt;
    std::vector<std::byte> whole = std::move(partial.payload);
    all_.erase(key);
    return whole;
  }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

 private:
  using Key = std::tuple<Rank, std::uint32_t, std::uint16_t>;  ///< source, collective, step
  struct Partial {
    std::vector<std::byte> payload;
    std::uint64_t here_bytes = 0;
  };
  std::map<Key, Partial> all_;
};

}  // namespace overlap::coll_mq
