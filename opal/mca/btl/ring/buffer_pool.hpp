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

/// Buffers that are made together when the first one is taken. What sends on the send/receive
/// channel lies in those of one pool; results of atomics that nobody wants go to those of another.
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

  /// @returns  in [0, buffers); nullopt when all are in use
  [[nodiscard]] std::optional<std::uint32_t> try_take() {
    if (free_.empty() && !try_make()) return std::nullopt;
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return index;
  }
  void give_back(std::uint32_t index) noexcept { free_.push_back(index); }  // there is room

  /// Of a buffer that is taken.
  [[nodiscard]] std::byte* at(std::uint32_t index) noexcept {
    return buffers_.get() + std::size_t{index} * shape_.buffer_bytes;
  }
  [[nodiscard]] std::uint32_t local_key() const noexcept { return region_.local_key; }

 private:
  /// @returns  false: they have been made already
  [[nodiscard]] bool try_make();

  RegisteredMemory& memory_;
  BufferPoolShape shape_;
  Lines buffers_{nullptr, [](std::byte*) {}};  // [buffers][buffer_bytes]
  fabric::MemoryRegion region_;
  std::vector<std::uint32_t> free_;
};

}  // namespace overlap::ring
