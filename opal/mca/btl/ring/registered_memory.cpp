// The memory of rings and buffers that a device reads and writes.
// SPDX-License-Identifier: BSD-3-Clause
#include "registered_memory.hpp"

#include <algorithm>

namespace overlap::ring {

std::optional<fabric::MemoryRegion> RegisteredMemory::try_add(
    std::byte* address, std::size_t bytes, unsigned rights,
    const fabric::Backing& backing) noexcept {
  fabric::MemoryRegion region;
  fabric::Status status = fabric::Status::refused;
  do {
    status = device_.register_memory(address, bytes, rights, backing, region);
  } while (status == fabric::Status::refused && kept_.try_reclaim());
  if (status != fabric::Status::done) return std::nullopt;
  bytes_ += bytes;
  max_bytes_ = std::max(max_bytes_, bytes_);
  return region;
}

fabric::MemoryRegion RegisteredMemory::add(std::byte* address, std::size_t bytes, unsigned rights,
                                           const char* what) {
  const auto region = try_add(address, bytes, rights);
  if (!region) refuse(what, bytes);
  return region.value();
}

void RegisteredMemory::remove(fabric::MemoryRegion& region) noexcept {
  bytes_ -= region.bytes;
  device_.deregister_memory(region);
}

}  // namespace overlap::ring
