// The memory of rings and buffers that a device reads and writes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "opal/fabric/fabric.hpp"

#include "reclaim.hpp"

namespace overlap::ring {

/// Registers the component's own memory and counts how much of it there is.
///
/// @thread  Guard held
class RegisteredMemory {
 public:
  /// Reports memory without which nothing works. Does not return in the component, where it ends
  /// the job; what a test passes may throw.
  using RefusedFunction = void (*)(const char* what, std::size_t bytes);

  /// @param device, kept, max_bytes  outlive it; `kept` is given up before memory is refused, and
  /// max_bytes takes the most that was registered at a time
  RegisteredMemory(fabric::Device& device, Reclaim& kept, std::uint64_t& max_bytes,
                   RefusedFunction refused) noexcept
      : device_(device), kept_(kept), max_bytes_(max_bytes), refused_(refused) {}
  RegisteredMemory(const RegisteredMemory&) = delete;
  RegisteredMemory& operator=(const RegisteredMemory&) = delete;

  /// @param rights  access::* or'ed
  /// @returns  nullopt when the device refuses; errno tells why
  [[nodiscard]] std::optional<fabric::MemoryRegion> try_add(
      std::byte* address, std::size_t bytes, unsigned rights,
      const fabric::Backing& backing = {}) noexcept;
  /// The same, of memory that there has to be. @param what  names it for users
  [[nodiscard]] fabric::MemoryRegion add(std::byte* address, std::size_t bytes, unsigned rights,
                                         const char* what);
  void remove(fabric::MemoryRegion& region) noexcept;
  void refuse(const char* what, std::size_t bytes) const { refused_(what, bytes); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  fabric::Device& device_;
  Reclaim& kept_;
  std::uint64_t& max_bytes_;
  RefusedFunction refused_;
  std::uint64_t bytes_ = 0;
};

}  // namespace overlap::ring
