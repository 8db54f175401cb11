// Is a message as long as its head says? Processes of one version send no other ones.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <span>

#include "message.hpp"

namespace overlap::newrma {

/// @param bytes  behind the head
[[nodiscard]] inline bool holds_blocks(const MessageHead& head, std::uint64_t bytes) noexcept {
  return head.block_count <= bytes / sizeof(Block);
}

/// Are blocks as long as that, together?
[[nodiscard]] inline bool are_as_long(std::span<const Block> blocks, std::uint64_t bytes) noexcept {
  for (const Block& each : blocks) {
    if (each.bytes > bytes) return false;
    bytes -= each.bytes;
  }
  return bytes == 0;
}

/// Has a message the payload that its kind and its blocks want? Not of rows and bundles.
/// @param payload_bytes  behind the blocks
[[nodiscard]] inline bool is_whole(const MessageHead& head, std::span<const Block> blocks,
                                   std::uint64_t payload_bytes) noexcept {
  switch (head.kind) {
    case Kind::put: return are_as_long(blocks, payload_bytes);
    case Kind::accumulate:
    case Kind::get_accumulate:
      return payload_bytes == 0 || are_as_long(blocks, payload_bytes);  // MPI_NO_OP
    case Kind::compare_swap:
      return blocks.size() == 1 && payload_bytes % 2 == 0 &&
             blocks.front().bytes == payload_bytes / 2;
    case Kind::get:
    case Kind::key_wanted: return payload_bytes == 0;
    case Kind::notice:
    case Kind::data:
    case Kind::key: return blocks.empty();
    case Kind::bundle: break;
  }
  return false;
}

}  // namespace overlap::newrma
