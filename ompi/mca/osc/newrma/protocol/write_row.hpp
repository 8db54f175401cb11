// Small puts and accumulates in a row, under one head.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bundle.hpp"
#include "message.hpp"
#include "operation_row.hpp"

namespace overlap::newrma {

/// What all writes of a row have in common.
[[nodiscard]] inline RowHead row_head_of(const MessageHead& head) noexcept {
  return {.kind = head.kind, .op = head.op, .element = head.element};
}

/// One more write where the last message of a bundle is a row (MessageHead::is_row) of its kind.
/// @param head   of the write, as if it were a row of its own
/// @param bytes  of its block and data
/// @returns  where to write these, until the next call; empty: it is no such row, or has no room
/// @throws std::bad_alloc  the bundle is as before
[[nodiscard]] inline std::span<std::byte> extend_row(Bundle& bundle, const MessageHead& head,
                                                     std::uint64_t bytes) {
  if (!bundle.can_extend(bytes)) return {};
  MessageHead row;
  std::memcpy(&row, bundle.last().data(), sizeof row);
  if (!row.is_row || row_head_of(row) != row_head_of(head)) return {};
  const std::span<std::byte> behind = bundle.extend(bytes);
  ++row.block_count;
  std::memcpy(bundle.last().data(), &row, sizeof row);
  return behind;
}

/// Hand over the writes of a row. @param bytes  behind its head
/// @param take  called with each block and its data
/// @returns  false: the bytes end within a write, or behind the last one, or it is no row of writes
template <class Take>
[[nodiscard]] bool for_each_write(const MessageHead& row, std::span<const std::byte> bytes,
                                  Take&& take) {
  if (row.kind != Kind::put && row.kind != Kind::accumulate) return false;
  for (std::uint32_t i = 0; i < row.block_count; ++i) {
    Block block;
    if (bytes.size() < sizeof block) return false;
    std::memcpy(&block, bytes.data(), sizeof block);
    bytes = bytes.subspan(sizeof block);
    if (bytes.size() < block.bytes) return false;
    take(block, bytes.first(block.bytes));
    bytes = bytes.subspan(block.bytes);
  }
  return bytes.empty();
}

}  // namespace overlap::newrma
