// The rare parts of the receiver's half of a ring.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_ring.hpp"

namespace overlap::ring {

ReceiveRing::ReceiveRing(std::byte* slots, std::uint32_t slot_count, std::uint32_t slot_bytes)
    : head_address_(slots),
      payload_max_(payload_max_bytes(slot_bytes)),
      slots_(slots),
      slot_count_(slot_count),
      slot_bytes_(slot_bytes),
      taken_(slot_count, idle) {
  std::memset(slots, 0, std::size_t{slot_count} * slot_bytes);
  for (std::uint32_t i = 0; i < slot_count; ++i) clear_header(slots + std::size_t{i} * slot_bytes);
}

/// After an in_place message the sender does not know what stands at the ends of its lines: make it
/// something that both know. Not before the slot is freed, for the payload is there.
void ReceiveRing::clear_tails(std::uint32_t slot, std::uint32_t lines) noexcept {
  std::byte* const at = slots_ + std::size_t{slot} * slot_bytes_;
  for (std::uint32_t line = 1; line <= lines; ++line) {
    auto* const tail = reinterpret_cast<std::uint8_t*>(at + std::size_t{line} * line_bytes - 1);
    __atomic_store_n(tail, flag_value::empty, __ATOMIC_RELAXED);
  }
}

}  // namespace overlap::ring
