// Handles for requests that the other side names: an index and a generation, so that a stale or
// invented handle finds nothing.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "headers.hpp"

namespace overlap::speculative {

/// Maps handles to objects. Never trusts a handle from the wire; owns nothing.
template <class T>
class HandleTable {
 public:
  /// @returns  a handle, never 0 and not given out again before 2^32 others of its slot
  [[nodiscard]] Handle add(T& object) {
    if (free_.empty()) {
      // First what may throw: nothing has changed then, and remove() never allocates.
      if (slots_.size() == slots_.capacity())
        slots_.reserve(std::max<std::size_t>(8, 2 * slots_.size()));
      free_.reserve(slots_.capacity());
      free_.push_back(static_cast<std::uint32_t>(slots_.size()));
      slots_.push_back({nullptr, 0});
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.object = &object;
    if (++slot.generation == 0) slot.generation = 1;
    ++used_;
    return Handle{slot.generation} << 32U | index;
  }

  /// @returns  the object, or nullptr for a handle that is stale or was never given out
  [[nodiscard]] T* find(Handle handle) const noexcept {
    const auto index = static_cast<std::uint32_t>(handle);
    if (index >= slots_.size()) return nullptr;
    const Slot& slot = slots_[index];
    return slot.generation == handle >> 32U ? slot.object : nullptr;
  }

  /// Was this handle given out, and removed since?
  [[nodiscard]] bool is_stale(Handle handle) const noexcept {
    const auto index = static_cast<std::uint32_t>(handle);
    const auto generation = static_cast<std::uint32_t>(handle >> 32U);
    if (index >= slots_.size() || generation == 0 || find(handle) != nullptr) return false;
    return static_cast<std::int32_t>(slots_[index].generation - generation) >= 0;
  }

  /// Let a handle that is given out name another object.
  void rebind(Handle handle, T& object) noexcept {
    slots_[static_cast<std::uint32_t>(handle)].object = &object;
  }

  void remove(Handle handle) noexcept {
    const auto index = static_cast<std::uint32_t>(handle);
    slots_[index].object = nullptr;
    free_.push_back(index);
    --used_;
  }

  [[nodiscard]] std::size_t size() const noexcept { return used_; }

 private:
  struct Slot {
    T* object;
    std::uint32_t generation;
  };
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
  std::size_t used_ = 0;
};

}  // namespace overlap::speculative
