// Which blocks of a target's memory one copy brings, gaps included.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "message.hpp"

namespace overlap::newrma {

/// A copy costs as much as some KiB more of it. Less than a page: no page is read that holds none
/// of a block's bytes, because such a page may be no memory, or none that may be read.
inline constexpr std::uint64_t gap_max_bytes = 4095;

/// How many of the first blocks lie in ascending order, with small gaps between them, in one piece
/// of memory of at most `room_bytes`. @returns  at least 1, if there is one
[[nodiscard]] inline std::size_t near_blocks(std::span<const Block> blocks,
                                             std::uint64_t room_bytes) noexcept {
  if (blocks.empty()) return 0;
  std::size_t count = 1;
  std::uint64_t end = blocks[0].address + blocks[0].bytes;
  while (count < blocks.size()) {
    const Block& next = blocks[count];
    if (next.address < end || next.address - end > gap_max_bytes ||
        next.address + next.bytes - blocks[0].address > room_bytes)
      break;
    end = next.address + next.bytes;
    ++count;
  }
  return count;
}

}  // namespace overlap::newrma
