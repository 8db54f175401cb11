// Copies bytes between the memories of two processes.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <sys/types.h>

#include <array>
#include <cstddef>
#include <span>

#include "engine/host.hpp"

namespace overlap::fabric::soft {

/// Moves pieces; what the device has mapped is touched directly, the rest goes through
/// process_vm_readv and process_vm_writev.
///
/// The last byte last: it is stored by itself (or with the aligned 8-byte word that it ends, in one
/// store) after everything else. The kernel may copy with `rep movsb`, whose stores have no order
/// among each other; x86 orders the stores of one string operation before those of the next, so
/// there the last byte is a part of its own in the same system call. Elsewhere it gets a call of
/// its own.
class Copier {
 public:
  Copier();

  /// @param last  see Host::copy
  [[nodiscard]] Copied copy(pid_t to, std::span<const Piece> target, pid_t from,
                            std::span<const Piece> source, bool last) noexcept;
  [[nodiscard]] Copied atomic(pid_t pid, const Piece& target, const WorkRequest& request,
                              std::uint64_t& old) noexcept;

 private:
  [[nodiscard, gnu::noinline]] bool move(pid_t to, std::span<const Piece> target, pid_t from,
                                         std::span<const Piece> source, bool last,
                                         volatile bool& reading) noexcept;
  [[nodiscard]] bool gather(pid_t from, std::span<const Piece> source, std::size_t bytes) noexcept;
  [[nodiscard]] static bool read_into(std::byte* target, pid_t from, const Piece& source,
                                      bool last) noexcept;
  [[nodiscard]] static bool scatter(pid_t to, std::span<const Piece> target, const std::byte* from,
                                    bool last) noexcept;

  /// Stays in the cache: bytes that neither side lets the device map pass through here.
  alignas(64) std::array<std::byte, Host::piece_bytes> buffer_;
};

}  // namespace overlap::fabric::soft
