// Registered buffers of one size that requests take and give back.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "lines.hpp"
#include "registered_memory.hpp"

namespace overlap::ring {

struct BufferPoolShape {
  std::uint32_t buffers;
  std::uint32_t buffer_bytes;
  unsigned rights;   ///< access::* or'ed
  const char* what;  ///< the buffers are for, in words for users
};

/// Buffers that are made together when the first one is taken, and more of them when they are asked
/// for. Results of atomics that nobody wants go to those of one pool; messages lie in those of
/// another (PeerBuffers).
///
/// @thread  Guard held
class BufferPool {
 public:
  /// @param memory  outlives it
  BufferPool(RegisteredMemory& memory, const BufferPoolShape& shape) noexcept
      : memory_(memory), shape_(shape) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// @returns  in [0, size()); nullopt when all are in use
  [[nodiscard]] std::optional<std::uint32_t> try_take() {
    if (blocks_.empty()) make_first();
    if (free_.empty()) return std::nullopt;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give_back(std::uint32_t index) noexcept { free_.push_back(index); }  // there is room
  /// As many again as there were at first. @returns  false: no memory, or the device refuses
  [[nodiscard]] bool try_grow() noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept {
    return static_cast<std::uint32_t>(blocks_.size()) * shape_.buffers;
  }

  /// Of a buffer that is taken.
  [[nodiscard]] std::byte* at(std::uint32_t index) noexcept {
    return block_of(index).memory.get() + std::size_t{index % shape_.buffers} * shape_.buffer_bytes;
  }
  [[nodiscard]] std::uint32_t local_key(std::uint32_t index) const noexcept {
    return block_of(index).region.local_key;
  }

 private:
  struct Block {
    Lines memory;  ///< [buffers][buffer_bytes]
    fabric::MemoryRegion region;
  };
  [[nodiscard]] const Block& block_of(std::uint32_t index) const noexcept {
    return blocks_[index / shape_.buffers];
  }
  [[nodiscard]] std::size_t block_bytes() const noexcept {
    return std::size_t{shape_.buffers} * shape_.buffer_bytes;
  }
  [[nodiscard]] Lines make_block();
  void make_first();
  void add(Lines memory, const fabric::MemoryRegion& region) noexcept;

  RegisteredMemory& memory_;
  BufferPoolShape shape_;
  std::vector<Block> blocks_;
  std::vector<std::uint32_t> free_;
};

}  // namespace overlap::ring
