// What a work request's id says: whose completion it is.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

/// What a completion belongs to: the low three bits of a work request's id.
enum class IdKind : std::uint8_t { ring_write, channel_send, in_place, bulk, receive };

[[nodiscard]] constexpr std::uint64_t make_id(IdKind kind, const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer) | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr std::uint64_t make_id(IdKind kind, std::uint32_t index) noexcept {
  return std::uint64_t{index} << 3U | static_cast<std::uint64_t>(kind);
}
[[nodiscard]] constexpr IdKind kind_of_id(std::uint64_t id) noexcept {
  return static_cast<IdKind>(id & 7U);
}
template <class Object>
[[nodiscard]] Object& object_of_id(std::uint64_t id) noexcept {
  return *reinterpret_cast<Object*>(id & ~std::uint64_t{7});
}
[[nodiscard]] constexpr std::uint32_t index_of_id(std::uint64_t id) noexcept {
  return static_cast<std::uint32_t>(id >> 3U);
}

}  // namespace overlap::ring
