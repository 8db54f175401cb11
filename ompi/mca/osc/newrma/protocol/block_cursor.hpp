// A position in the target's memory of an operation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message.hpp"

namespace overlap::newrma {

/// Cuts a list of blocks into messages.
class BlockCursor {
 public:
  /// @param blocks  outlive the cursor
  explicit BlockCursor(std::span<const Block> blocks) noexcept : blocks_(blocks) {}

  [[nodiscard]] bool at_end() const noexcept { return index_ == blocks_.size(); }
  /// Bytes handed out so far.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  /// The next blocks for a message.
  /// @param room_bytes     for blocks and, `with_data`, as many bytes as they name
  /// @param element_bytes  no element is cut; room_bytes has room for one with its block
  /// @returns  bytes that they name
  std::uint64_t take(std::vector<Block>& out, std::uint64_t room_bytes, std::uint64_t element_bytes,
                     bool with_data) {
    std::uint64_t taken = 0;
    while (!at_end() && room_bytes > sizeof(Block)) {
      const Block& block = blocks_[index_];
      const std::uint64_t room = with_data ? room_bytes - sizeof(Block) : UINT64_MAX;
      std::uint64_t bytes = std::min(block.bytes - offset_, room);
      if (bytes != block.bytes - offset_) bytes -= bytes % element_bytes;
      if (bytes == 0) break;
      out.push_back({block.address + offset_, bytes});
      room_bytes -= sizeof(Block) + (with_data ? bytes : 0);
      taken += bytes;
      offset_ += bytes;
      if (offset_ == block.bytes) {
        ++index_;
        offset_ = 0;
      }
    }
    position_ += taken;
    return taken;
  }

 private:
  std::span<const Block> blocks_;
  std::size_t index_ = 0;
  std::uint64_t offset_ = 0;  ///< in that block
  std::uint64_t position_ = 0;
};

}  // namespace overlap::newrma
