// Writes into the memory of another process of this node, to many places with one call of the
// kernel: BTLs put one piece at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace overlap::node {

/// What a process tells others, in memory that they share, so that they can reach its own and know
/// that it is the right one: a number names another process in another container. All zero bytes:
/// it has told nothing.
struct ProcessFacts {
  std::int32_t pid = 0;
  std::uint64_t token_address = 0;
  std::uint64_t token = 0;  ///< what lies there; random, not 0
};
/// Those of this process. @returns  zeros: the kernel gives no random number
[[nodiscard]] const ProcessFacts& own_process_facts() noexcept;

struct Place {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
};

enum class Scattered : std::uint8_t {
  all,
  none,  ///< nothing has been written: the kernel does not let this process write there, it is
         ///< another process, or the first place is no memory
  some,  ///< a place is no memory, or may not be written
};
/// Write bytes, one piece after the other, to those places.
/// @param from  as many bytes as all places have
[[nodiscard]] Scattered scatter(const ProcessFacts& to, std::span<const Place> places,
                                const std::byte* from) noexcept;

}  // namespace overlap::node
