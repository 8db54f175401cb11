// Which memory a work request may touch, and where it is.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "objects.hpp"
#include "regions.hpp"

namespace overlap::fabric::soft {

inline constexpr std::uint64_t message_max_bytes = 1U << 30U;

/// Runs of bytes in the poster's memory.
struct LocalPieces {
  std::array<Piece, gather_limit> pieces;
  std::size_t count = 0;

  [[nodiscard]] std::span<const Piece> span() const noexcept { return {pieces.data(), count}; }
};

/// Looks keys up. It changes nothing; deregistered memory is found out at the next look.
class AccessCheck {
 public:
  explicit AccessCheck(const Regions& regions) noexcept : regions_(regions) {}

  /// May the poster's adapter send this? @returns  success | length_error | protection_error
  [[nodiscard]] CompletionStatus check_local(const Pair& pair, const Task& task) const noexcept;
  /// May the responder's adapter do this? @returns  success | remote_access_error
  [[nodiscard]] CompletionStatus check_remote(const Pair& pair, const Task& task) const noexcept;
  /// Does the message fit into the receive entry that it took?
  /// @returns  success | length_error | protection_error
  [[nodiscard]] CompletionStatus check_receive(const Pair& receiver,
                                               const Task& task) const noexcept;

  /// The next `bytes` in the poster's memory. @returns  nothing: a key is not good (any more)
  [[nodiscard]] std::optional<LocalPieces> find_local(const Pair& pair, const Task& task,
                                                      std::uint64_t bytes) const noexcept;
  /// The next `bytes` at the peer: what the request names, its receive entry, or the value that an
  /// atomic found there. @returns  nothing: the key is not good (any more)
  [[nodiscard]] std::optional<Piece> find_remote(const Pair& pair, const Task& task,
                                                 std::uint64_t bytes) const noexcept;
  /// The eight bytes of an atomic. Precondition: check_remote() said success
  [[nodiscard]] Piece find_atomic(const Pair& pair, const Task& task) const noexcept;

 private:
  const Regions& regions_;
};

}  // namespace overlap::fabric::soft
