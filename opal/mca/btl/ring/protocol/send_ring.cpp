// The rare parts of the sender's half of a ring.
// SPDX-License-Identifier: BSD-3-Clause
#include "send_ring.hpp"

namespace overlap::ring {

SendRing::SendRing(std::byte* slots, std::uint32_t slot_count, std::uint32_t slot_bytes)
    : slots_(slots),
      slot_count_(slot_count),
      slot_bytes_(slot_bytes),
      free_slots_(slot_count),
      cleared_lines_(slot_count) {
  std::memset(slots, 0, std::size_t{slot_count} * slot_bytes);
}

/// Do in the mirror what the receiver has done after the last message. Lines before the new
/// message's last one are left: a copied payload is already there and goes over the receiver's, an
/// in_place one is noted again.
void SendRing::clear_mirror(std::uint32_t index, std::uint32_t lines) noexcept {
  for (std::uint32_t line = lines; line <= cleared_lines_[index]; ++line) {
    slot(index)[std::size_t{line} * line_bytes - 1] = std::byte{flag_value::empty};
  }
  cleared_lines_[index] = 0;
}

}  // namespace overlap::ring
