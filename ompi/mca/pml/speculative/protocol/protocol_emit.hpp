// Helpers of the protocol's own sources.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "protocol.hpp"

namespace overlap::speculative {

inline constexpr const char* too_many_fragments = "more fragments than the message has bytes";

/// Does a message name a request that has ended since? Then it is dropped.
template <class Op>
bool Protocol::is_stale(const HandleTable<Op>& table, std::span<const std::byte> message) {
  if (!table.is_stale(load<TargetedHeader>(message).target)) return false;
  drop_stale(message);
  return true;
}

}  // namespace overlap::speculative
