// Copies to and from the memory of another process of this node, many pieces with one call of the
// kernel: BTLs copy one at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

/// Write bytes, one piece after the other, to those places.
/// @param from  as many bytes as all places have
/// @returns  how many have been written: fewer than all when a place is no memory, or may not be
///           written. Nothing: the kernel does not let this process write there, or it is another
///           process
[[nodiscard]] std::optional<std::uint64_t> scatter(const ProcessFacts& to,
                                                   std::span<const Place> places,
                                                   const std::byte* from) noexcept;

/// The same to a process whose memory has just been fetched: who it is is not looked at again.
[[nodiscard]] std::uint64_t scatter_fetched(const ProcessFacts& to, std::span<const Place> places,
                                            const std::byte* from) noexcept;

/// Read the bytes of those places, one piece after the other. @param places  at most fetch_max
/// @param to  room for all of them
/// @returns  false: one is no memory, or the kernel does not let this process read it, or it is
///           another process; `to` holds anything
inline constexpr std::size_t fetch_max = 2;
[[nodiscard]] bool fetch(const ProcessFacts& from, std::span<const Place> places,
                         std::byte* to) noexcept;

}  // namespace overlap::node
