// Registered memory: who may touch which bytes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace overlap::fabric::soft {

/// Memory of one client that the device knows.
struct Region {
  std::uint32_t client = 0;  ///< 0: free
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  unsigned rights = 0;           ///< access::*
  std::byte* mapping = nullptr;  ///< where the device sees the same bytes; nullptr: it does not

  [[nodiscard]] bool covers(std::uint64_t from, std::uint64_t count) const noexcept {
    return from >= address && from - address <= bytes && count <= bytes - (from - address);
  }
  [[nodiscard]] std::byte* mapped(std::uint64_t at) const noexcept {
    return mapping == nullptr ? nullptr : mapping + (at - address);
  }
};

/// All regions by key. A key is never 0; a stale one is recognised until its place was used 255
/// times more.
class Regions {
 public:
  [[nodiscard]] std::uint32_t add(const Region& region);
  void remove(std::uint32_t key) noexcept;
  /// @returns  the region, or nullptr when the key is unknown or does not cover the bytes with
  /// these rights for this client
  [[nodiscard]] const Region* find(std::uint32_t key, std::uint32_t client, std::uint64_t address,
                                   std::uint64_t bytes, unsigned rights) const noexcept;
  /// @returns  the region of a client by key, or nullptr
  [[nodiscard]] const Region* own(std::uint32_t key, std::uint32_t client) const noexcept;
  /// Keys of one client.
  [[nodiscard]] std::vector<std::uint32_t> keys(std::uint32_t client) const;

 private:
  struct Place {
    Region region;
    std::uint8_t generation = 1;
  };
  static constexpr unsigned generation_bits = 8;

  std::vector<Place> places_;
  std::vector<std::uint32_t> free_;
};

}  // namespace overlap::fabric::soft
