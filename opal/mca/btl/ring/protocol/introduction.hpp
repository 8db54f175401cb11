// What a connection request carries: who asks, for what, and the proof that it may (P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace overlap::ring {

/// 128 random bits that a process gives to the others of its job, and to nobody else.
using Secret = std::array<std::byte, 16>;

/// Which of a peer's two queue pairs.
enum class Purpose : std::uint8_t { messages, bulk };

struct Introduction {
  std::uint64_t name = 0;     ///< of the process that asks
  std::uint32_t attempt = 0;  ///< counts the requests of this process for this connection, from 1
  Purpose purpose = Purpose::messages;

  friend bool operator==(const Introduction&, const Introduction&) = default;
};

inline constexpr std::size_t introduction_bytes = 32;
using IntroductionBytes = std::array<std::byte, introduction_bytes>;

/// @param secret  of the process that is asked
[[nodiscard]] IntroductionBytes encode(const Introduction& introduction,
                                       const Secret& secret) noexcept;

/// @param own  our secret; compared before anything else is looked at, in the same time wherever
/// it differs
/// @returns  nothing when the request comes from somebody who does not know it, or from another
/// version
[[nodiscard]] std::optional<Introduction> decode_introduction(std::span<const std::byte> bytes,
                                                              const Secret& own) noexcept;

}  // namespace overlap::ring
