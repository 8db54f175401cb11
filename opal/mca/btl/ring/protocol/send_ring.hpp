// The sender's half of a ring: slots bound for life to those of the receiver, and the credits to
// use them (P2.1, P2.2, P2.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "wire.hpp"

namespace overlap::ring {

/// Chooses slots and flags. The memory is the caller's, registered, and read by the device until
/// the write has completed.
///
/// Slot i mirrors slot i of the receiver at each place where a tail flag can be, the last byte of
/// each line: a copied message makes all of its bytes equal on both sides, and after an in_place
/// message the receiver clears those places and this side takes them for cleared. So the mirror
/// tells which flag value differs from what the receiver will find there.
class SendRing {
 public:
  /// @param slots  [slot_count][slot_bytes], aligned to a line; zeroed here
  /// @param slot_bytes  a multiple of line_bytes
  SendRing(std::byte* slots, std::uint32_t slot_count, std::uint32_t slot_bytes);

  [[nodiscard]] bool has_credit() const noexcept { return free_slots_ != 0; }
  [[nodiscard]] std::uint32_t free_slots() const noexcept { return free_slots_; }
  [[nodiscard]] std::uint32_t slot_count() const noexcept { return slot_count_; }
  [[nodiscard]] std::uint32_t slot_bytes() const noexcept { return slot_bytes_; }
  /// The slot that the next message takes. Needs has_credit().
  [[nodiscard]] std::uint32_t head_slot() const noexcept { return head_; }
  [[nodiscard]] std::byte* slot(std::uint32_t index) const noexcept {
    return slots_ + std::size_t{index} * slot_bytes_;
  }

  /// What the RDMA write of one message consists of. A copied message: [0, wire_bytes) of the slot.
  /// An in_place one: [0, header_bytes) of the slot, the payload from the user, tail_bytes of the
  /// slot from tail_offset on. In both cases to offset 0 of the same slot.
  struct Sealed {
    std::uint32_t slot;
    std::uint32_t wire_bytes;
    std::uint32_t tail_offset;
    std::uint32_t tail_bytes;
  };
  /// Write header and tail flag into the head slot and advance the head. The payload of a copied
  /// message is there already, behind the header. Needs has_credit() and a payload of at most
  /// payload_max_bytes(slot_bytes).
  /// @param header  head_flag is chosen here
  /// @source  P2.2, P3.2; rdma-eager-2003 section 4.2
  [[nodiscard]] Sealed seal(MessageHeader header) noexcept {
    const std::uint32_t index = head_;
    std::byte* const to = slots_ + std::size_t{index} * slot_bytes_;
    const std::uint32_t whole_bytes = wire_bytes(header.size_bytes);
    std::byte* const tail = to + whole_bytes - 1;
    const std::uint32_t lines = whole_bytes / line_bytes;
    if (cleared_lines_[index] != 0) [[unlikely]]
      clear_mirror(index, lines);
    if ((header.control & control_bit::in_place) != 0) cleared_lines_[index] = lines;
    header.head_flag =
        *tail == std::byte{flag_value::primary} ? flag_value::secondary : flag_value::primary;
    std::memcpy(to, &header, header_bytes);
    *tail = std::byte{header.head_flag};
    head_ = index + 1 == slot_count_ ? 0 : index + 1;
    --free_slots_;
    return {index, whole_bytes, header_bytes + header.size_bytes,
            whole_bytes - header_bytes - header.size_bytes};
  }

  /// The receiver has freed slots. @returns  false, and nothing changes: more than are out, a fault
  /// of the peer
  [[nodiscard]] bool on_credits(std::uint32_t count) noexcept {
    if (count > slot_count_ - free_slots_) return false;
    free_slots_ += count;
    return true;
  }
  /// Has every slot that was used come back?
  [[nodiscard]] bool all_returned() const noexcept { return free_slots_ == slot_count_; }

 private:
  void clear_mirror(std::uint32_t index, std::uint32_t lines) noexcept;

  std::byte* slots_;
  std::uint32_t slot_count_;
  std::uint32_t slot_bytes_;
  std::uint32_t head_ = 0;
  std::uint32_t free_slots_;
  /// [slot_count]: lines whose tail bytes the receiver has cleared, because the last message of the
  /// slot was in_place. Noted, and done in the mirror only by the next seal: until the write has
  /// completed the device reads the tail byte from there.
  std::vector<std::uint32_t> cleared_lines_;
};

}  // namespace overlap::ring
