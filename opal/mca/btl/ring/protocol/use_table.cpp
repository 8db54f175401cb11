// The rare parts of counting buffer uses.
// SPDX-License-Identifier: BSD-3-Clause
#include "use_table.hpp"

#include <new>

namespace overlap::ring {

UseTable::UseTable(std::uint32_t bucket_bits, std::uint32_t stop_percent, const CostModel& costs)
    : costs_(costs),
      shift_(64 - bucket_bits),
      stop_percent_(stop_percent),
      buckets_(static_cast<std::uint32_t*>(
          std::calloc(std::size_t{1} << bucket_bits, sizeof(std::uint32_t)))) {
  if (!buckets_) throw std::bad_alloc();
}

void UseTable::add(const void* address) noexcept {
  if (stopped()) return;
  try {
    entries_.push_back({address, 0, 1, 0, 0});
  } catch (...) {  // bad_alloc, or length_error: no more buffers are learnt
    no_memory_ = true;
    return;
  }
  std::uint32_t& bucket = buckets_.get()[bucket_of(address)];
  if (bucket != 0) ++chained_;
  entries_.back().next = bucket;  // in front: a buffer that is used again soon is found first
  bucket = buffers();
}

void UseTable::forget(const void* address) noexcept {
  const std::uint32_t index = find(address);
  if (index == none) return;
  frequent_ -= entries_[index].frequent;
  entries_[index].frequent = 0;
  entries_[index].refused = 1;
}

}  // namespace overlap::ring
