// Helpers of the protocol's own sources: control messages out, memory descriptions in.
#pragma once

#include <cstring>

#include "protocol.hpp"

namespace overlap::speculative {

template <class Header>
Action& Protocol::emit_control(Peer& peer, const Header& header) {
  static_assert(sizeof header <= header_max_bytes);
  Action& action = emit(Action::Kind::control);
  action.peer = &peer;
  action.header_bytes = sizeof header;
  std::memcpy(action.header.data(), &header, sizeof header);
  return action;
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
