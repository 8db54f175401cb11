// From the device's queue pair numbers to what belongs to them, for every completion.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace overlap::fabric::verbs {

/// Open addressing with linear probing, at most half full. Devices count their numbers up, so that
/// most stand in their first place.
///
/// @thread  the device's
template <class Value>
class NumberTable {
 public:
  /// @param number  not 0 and not in the table
  void insert(std::uint32_t number, Value* value) {
    if ((count_ + 1) * 2 > slots_.size()) grow();
    place(number, value);
    ++count_;
  }

  void erase(std::uint32_t number) noexcept {
    std::size_t hole = find_slot(number);
    if (slots_[hole].number == 0) return;
    --count_;
    // Close the hole: whatever was pushed past it moves back, so that a search may go on stopping
    // at the first empty slot.
    const std::size_t mask = slots_.size() - 1;
    for (std::size_t next = (hole + 1) & mask; slots_[next].number != 0; next = (next + 1) & mask) {
      const std::size_t home = slots_[next].number & mask;
      if (((next - home) & mask) < ((next - hole) & mask)) continue;
      slots_[hole] = slots_[next];
      hole = next;
    }
    slots_[hole] = {};
  }

  /// @returns  nullptr when it is not there
  [[nodiscard]] Value* find(std::uint32_t number) const noexcept {
    return slots_[find_slot(number)].value;
  }

  template <class Function>
  void for_each(Function&& function) const {
    for (const Slot& slot : slots_) {
      if (slot.number != 0) function(*slot.value);
    }
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

 private:
  struct Slot {
    std::uint32_t number = 0;
    Value* value = nullptr;
  };

  [[nodiscard]] std::size_t find_slot(std::uint32_t number) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t idx = number & mask;
    while (slots_[idx].number != number && slots_[idx].number != 0) idx = (idx + 1) & mask;
    return idx;
  }
  void place(std::uint32_t number, Value* value) noexcept {
    slots_[find_slot(number)] = {number, value};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.number != 0) place(slot.number, slot.value);
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(16);  // a power of two
  std::size_t count_ = 0;
};

}  // namespace overlap::fabric::verbs
