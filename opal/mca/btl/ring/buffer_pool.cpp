// Registered buffers of one size that requests take and give back.
// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_pool.hpp"

namespace overlap::ring {

BufferPool::~BufferPool() {
  for (Block& each : blocks_) memory_.remove(each.region);
}

/// Memory of a block, and room for what add() enters: nothing throws once it is registered.
Lines BufferPool::make_block() {
  blocks_.reserve(blocks_.size() + 1);
  free_.reserve(std::size_t{size()} + shape_.buffers);
  return allocate_lines(block_bytes());
}

void BufferPool::make_first() {
  Lines made = make_block();
  const auto region = memory_.add(made.get(), block_bytes(), shape_.rights, shape_.what);
  add(std::move(made), region);
}

bool BufferPool::try_grow() noexcept {
  try {
    Lines made = make_block();
    const auto region = memory_.try_add(made.get(), block_bytes(), shape_.rights);
    if (region) add(std::move(made), *region);
    return region.has_value();
  } catch (...) {  // no memory
    return false;
  }
}

void BufferPool::add(Lines memory, const fabric::MemoryRegion& region) noexcept {
  const std::uint32_t first = size();
  blocks_.push_back({std::move(memory), region});
  for (std::uint32_t i = size(); i > first; --i) free_.push_back(i - 1);
}

}  // namespace overlap::ring
