// Memory of unexpected messages.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <new>
#include <utility>

#include "operations.hpp"

namespace overlap::speculative {

ArrivedPool::~ArrivedPool() {
  for (Free* each : free_) {
    while (each != nullptr) std::free(std::exchange(each, each->next));
  }
}

Arrived* ArrivedPool::make(std::uint64_t payload_bytes) {
  const std::uint64_t room_bytes = std::max(std::bit_ceil(payload_bytes), smallest_bytes);
  const auto of_size = static_cast<std::size_t>(std::countr_zero(room_bytes / smallest_bytes));
  void* memory = nullptr;
  if (of_size < classes && free_[of_size] != nullptr) {
    memory = std::exchange(free_[of_size], free_[of_size]->next);
    kept_bytes_ -= room_bytes;
  } else {
    memory = std::malloc(sizeof(Arrived) + (of_size < classes ? room_bytes : payload_bytes));
    if (memory == nullptr) throw std::bad_alloc();
  }
  auto* arrived = new (memory) Arrived;
  arrived->pool = this;
  arrived->payload_bytes = payload_bytes;
  arrived->room_bytes = room_bytes;
  return arrived;
}

void ArrivedPool::take_back(Arrived* arrived) noexcept {
  const std::uint64_t room_bytes = arrived->room_bytes;
  const auto of_size = static_cast<std::size_t>(std::countr_zero(room_bytes / smallest_bytes));
  arrived->~Arrived();
  if (of_size >= classes || kept_bytes_ + room_bytes > kept_max_bytes) {
    std::free(arrived);
    return;
  }
  kept_bytes_ += room_bytes;
  free_[of_size] = new (arrived) Free{free_[of_size]};
}

void Arrived::destroy(Arrived* arrived) noexcept { arrived->pool->take_back(arrived); }

}  // namespace overlap::speculative
