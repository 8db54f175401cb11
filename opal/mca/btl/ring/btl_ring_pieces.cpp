// The bytes of a message that is to be sent, where they lie.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_pieces.hpp"

#include <cstring>

namespace overlap::ring {

void Pieces::copy_to(std::byte* out) const noexcept {
  std::memcpy(out, first, first_bytes);
  if (second_bytes == 0) return;
  if (convertor == nullptr) {
    std::memcpy(out + first_bytes, second, second_bytes);
    return;
  }
  iovec piece{out + first_bytes, second_bytes};
  std::uint32_t pieces = 1;
  std::size_t packed = second_bytes;
  opal_convertor_pack(convertor, &piece, &pieces, &packed);
}

Pieces pieces_of(const Fragment& fragment) noexcept {
  const auto& [header, data] = fragment.segments;
  const bool two = fragment.base.des_segment_count > 1;
  return {header.seg_addr.pval, static_cast<std::uint32_t>(header.seg_len),
          two ? data.seg_addr.pval : nullptr, two ? static_cast<std::uint32_t>(data.seg_len) : 0,
          nullptr};
}

}  // namespace overlap::ring
