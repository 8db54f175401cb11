// The receiver's half of a ring: finding messages in memory that a device writes, and giving the
// slots back (P2.1, P2.2, P2.4).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cassert>
#include <cstdint>
#include <cstring>
#include <vector>

#include "wire.hpp"

namespace overlap::ring {

/// Finds messages in the order of the slots; slots are freed in any order.
///
/// Ownership
///   slots[i]   the device from the credit of slot i on until the tail flag has landed; this side
///              from peek() to free(i)
///   the rest   this side, under the caller's lock
/// Orders. The device and this processor share no atomics; what is needed of each:
///   D1 the last byte of a write lands last, and an aligned word of 4 bytes lands at once (or from
///      its first byte to its last). The provider promises it (QueuePair::write_order()) and must
///      not register the memory for relaxed PCIe order.
///   D1 -> R1 head_flag.load(acquire): on a weakly ordered processor the size would otherwise be
///      read from before the flag.
///   D1 -> R2 tail flag.load(acquire): everything else, header and payload, is read only after it.
///      Without it a processor may have read the payload ahead, from before the write.
///   R3 the clearing stores of advance() and free() -> D2 the device's next write to the slot: the
///      peer writes only after it has the credit; the credit leaves with a message, and the
///      doorbell that posts it is a release in the provider. So the stores are visible before the
///      credit leaves. Without it the clearing could land on top of the next message.
///   At the sender the same doorbell orders the slot's bytes before the device reads them.
/// head_flag and size may land at different times: advance() sets the size to one that no message
/// has, so a new flag with an old size is never taken for a message. The header as a whole is read
/// after the tail flag.
class ReceiveRing {
 public:
  /// @param slots  [slot_count][slot_bytes], aligned to a line, nobody writes there yet; zeroed
  /// here
  /// @param slot_bytes  a multiple of line_bytes
  ReceiveRing(std::byte* slots, std::uint32_t slot_count, std::uint32_t slot_bytes);

  struct Arrival {
    std::uint32_t slot;
    MessageHeader header;
    const std::byte* payload;  ///< valid until free(slot)
  };
  /// Look at the slot where the next message will be. Changes nothing: the same message is found
  /// until advance().
  [[nodiscard]] bool peek(Arrival& out) const noexcept {
    const std::byte* const at = head_address_;
    const std::uint8_t flag =
        __atomic_load_n(reinterpret_cast<const std::uint8_t*>(at), __ATOMIC_ACQUIRE);  // R1
    if (flag == flag_value::empty) [[likely]]
      return false;
    const std::uint32_t size_bytes = __atomic_load_n(
        reinterpret_cast<const std::uint32_t*>(at + offsetof(MessageHeader, size_bytes)),
        __ATOMIC_RELAXED);
    if (size_bytes > payload_max_) return false;  // has not landed
    const std::byte* const tail = at + wire_bytes(size_bytes) - 1;
    if (__atomic_load_n(reinterpret_cast<const std::uint8_t*>(tail), __ATOMIC_ACQUIRE) != flag)
      return false;  // R2
    out.slot = head_;
    std::memcpy(&out.header, at, header_bytes);
    out.payload = at + header_bytes;
    return true;
  }

  /// Take the message that peek() has found; its payload stays until free(). Clears the head flag.
  void advance() noexcept {
    std::byte* const at = head_address_;
    MessageHeader header;
    std::memcpy(&header, at, header_bytes);
    const bool in_place = (header.control & control_bit::in_place) != 0;
    taken_[head_] = taken_bit | (in_place ? wire_bytes(header.size_bytes) / line_bytes : 0);
    clear_header(at);
    ++held_;
    head_ = head_ + 1 == slot_count_ ? 0 : head_ + 1;
    head_address_ = slots_ + std::size_t{head_} * slot_bytes_;
    if (published_head_ != nullptr) __atomic_store_n(published_head_, head_, __ATOMIC_RELAXED);
  }

  /// Give a slot back that advance() has taken, in any order (P2.4). The tail moves over freed
  /// ones, and credits accrue.
  void free(std::uint32_t slot) noexcept {
    assert((taken_[slot] & taken_bit) != 0);
    const std::uint32_t lines = taken_[slot] & ~taken_bit;
    if (lines != 0) clear_tails(slot, lines);
    taken_[slot] = freed;
    --held_;
    while (taken_[tail_] == freed) {  // ends: each step takes one mark away
      taken_[tail_] = idle;
      tail_ = tail_ + 1 == slot_count_ ? 0 : tail_ + 1;
      ++credits_;
    }
  }

  /// Slots freed that the sender has not been told of.
  [[nodiscard]] std::uint32_t credits() const noexcept { return credits_; }
  /// Take them to put them into a message.
  [[nodiscard]] std::uint32_t take_credits(std::uint32_t max) noexcept {
    const std::uint32_t count = credits_ < max ? credits_ : max;
    credits_ -= count;
    return count;
  }
  [[nodiscard]] std::uint32_t head() const noexcept { return head_; }
  [[nodiscard]] std::uint32_t slot_count() const noexcept { return slot_count_; }
  /// Is nothing taken and not freed?
  [[nodiscard]] bool drained() const noexcept { return held_ == 0; }

  /// Keep the head at another place too, for other processes (RingArea::head). @param where
  /// nullptr: nowhere
  void publish_head(std::uint32_t* where) noexcept {
    published_head_ = where;
    if (where != nullptr) __atomic_store_n(where, head_, __ATOMIC_RELAXED);
  }
  /// Where the address of the next message's head flag stands, for those who look at many rings.
  /// Valid while this object stays.
  [[nodiscard]] const std::byte* const* head_address() const noexcept { return &head_address_; }

 private:
  static constexpr std::uint32_t taken_bit = 1U << 31U;
  static constexpr std::uint32_t idle = 0;
  static constexpr std::uint32_t freed = 1U << 30U;
  static constexpr std::uint32_t no_size =
      UINT32_MAX;  ///< more than any slot holds, in its last byte too

  static void clear_header(std::byte* at) noexcept {
    __atomic_store_n(reinterpret_cast<std::uint32_t*>(at + offsetof(MessageHeader, size_bytes)),
                     no_size, __ATOMIC_RELAXED);
    __atomic_store_n(reinterpret_cast<std::uint8_t*>(at), flag_value::empty, __ATOMIC_RELAXED);
  }
  void clear_tails(std::uint32_t slot, std::uint32_t lines) noexcept;

  std::byte* head_address_;  ///< of slot head_
  std::uint32_t payload_max_;
  std::uint32_t head_ = 0;
  std::byte* slots_;
  std::uint32_t slot_count_;
  std::uint32_t slot_bytes_;
  std::uint32_t tail_ = 0;  ///< the oldest slot that has not been freed
  std::uint32_t credits_ = 0;
  std::uint32_t held_ = 0;  ///< taken and not freed
  std::uint32_t* published_head_ = nullptr;
  std::vector<std::uint32_t>
      taken_;  ///< [slot_count]: idle, freed, or taken_bit and the lines of an in_place message
};

}  // namespace overlap::ring
