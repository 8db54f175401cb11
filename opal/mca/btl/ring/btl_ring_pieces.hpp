// The bytes of a message that is to be sent, where they lie.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>

#include "btl_ring_fragments.hpp"

namespace overlap::ring {

/// Bytes of a message in up to two pieces: the upper layer's header, then data.
struct Pieces {
  const void* first;
  std::uint32_t first_bytes;
  const void* second;  ///< nullptr: none
  std::uint32_t second_bytes;
  opal_convertor_t* convertor;  ///< not nullptr: packs second_bytes instead of `second`

  [[nodiscard]] std::uint32_t bytes() const noexcept { return first_bytes + second_bytes; }
  void copy_to(std::byte* out) const noexcept;
};
[[nodiscard]] Pieces pieces_of(const Fragment& fragment) noexcept;

}  // namespace overlap::ring
