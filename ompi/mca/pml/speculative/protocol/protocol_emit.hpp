// Helpers of the protocol's own sources: control messages out, memory descriptions in.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstring>

#include "protocol.hpp"

namespace overlap::speculative {

inline constexpr const char* too_many_fragments = "more fragments than the message has bytes";

template <class Header>
Action Protocol::control_action(Peer& peer, const Header& header) {
  static_assert(sizeof header <= header_max_bytes);
  Action action;
  action.kind = Action::Kind::control;
  action.peer = &peer;
  action.message.header_bytes = sizeof header;
  std::memcpy(action.message.header.data(), &header, sizeof header);
  if (is_forward(action.message.kind()) && streams_.must_announce(peer)) {
    action.message.with_prefix = true;
    action.message.prefix = streams_.announce(peer);
  }
  return action;
}

template <class Header>
Action& Protocol::emit_control(Peer& peer, const Header& header) {
  return actions_.emplace_back(control_action(peer, header));
}

/// Does a message name a request that has ended since? Then it is dropped.
template <class Op>
bool Protocol::is_stale(const HandleTable<Op>& table, std::span<const std::byte> message) {
  if (!table.is_stale(load<TargetedHeader>(message).target)) return false;
  drop_stale(message);
  return true;
}

/// @param key  at most key_max_bytes (checked by find_fault)
inline RemoteMemory load_memory(std::uint64_t address, bool accessible,
                                std::span<const std::byte> key, const void* rail) noexcept {
  RemoteMemory memory;
  memory.rail = rail;
  memory.address = address;
  memory.accessible = accessible;
  memory.key_bytes = static_cast<std::uint16_t>(key.size());
  if (!key.empty()) std::memcpy(memory.key.data(), key.data(), key.size());
  return memory;
}

}  // namespace overlap::speculative
