// What the wire and the segment may hold, and the helper's look at it.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

namespace overlap::ring {

const char* find_fault(const MessageHeader& header, std::uint32_t room_bytes) noexcept {
  if (header.version != layout_version) return "message of another layout version";
  if (header.zero != 0) return "message with a reserved field set";
  if ((header.control & ~control_bit::all) != 0) return "message with unknown control bits";
  if (header.size_bytes > room_bytes) return "message larger than the place it is in";
  if ((header.control & control_bit::unordered) != 0 &&
      (header.credits != 0 ||
       (header.control & (control_bit::close_ring | control_bit::ring_closed)) != 0)) {
    return "message outside the order that speaks of rings";
  }
  if (header.tag == 0 && header.size_bytes != sizeof(ControlBody))
    return "control message of a wrong size";
  return nullptr;
}

const char* find_fault(const ControlBody& body) noexcept {
  if (body.kind < control_kind::credits_only || body.kind > control_kind::goodbye)
    return "control message of an unknown kind";
  if (body.kind != control_kind::ring_open) return nullptr;
  if (body.slots == 0 || body.slot_bytes == 0 || body.slot_bytes % line_bytes != 0)
    return "ring of an impossible shape";
  if (body.address % line_bytes != 0) return "ring that does not begin with a line";
  return nullptr;
}

namespace {

bool flag_is_set(std::span<const std::byte> segment, std::uint64_t offset_bytes) noexcept {
  const auto* flag = reinterpret_cast<const std::uint8_t*>(segment.data() + offset_bytes);
  return __atomic_load_n(flag, __ATOMIC_RELAXED) != flag_value::empty;  // nothing is read behind it
}

/// Are `count` pieces of `each_bytes` at this offset inside the segment? None of the products can
/// overflow.
bool is_inside(std::span<const std::byte> segment, std::uint64_t offset_bytes, std::uint32_t count,
               std::uint32_t each_bytes) noexcept {
  return offset_bytes <= segment.size() &&
         std::uint64_t{count} * each_bytes <= segment.size() - offset_bytes;
}

bool ring_has_something(std::span<const std::byte> segment, const RingArea& area) noexcept {
  if (__atomic_load_n(&area.state, __ATOMIC_ACQUIRE) != area_state::open)
    return false;  // H2, pairs with S2
  const std::uint32_t slots = __atomic_load_n(&area.slots, __ATOMIC_RELAXED);
  const std::uint32_t slot_bytes = __atomic_load_n(&area.slot_bytes, __ATOMIC_RELAXED);
  const std::uint64_t offset_bytes = __atomic_load_n(&area.offset_bytes, __ATOMIC_RELAXED);
  const std::uint32_t head = __atomic_load_n(&area.head, __ATOMIC_RELAXED);
  if (head >= slots || slot_bytes < line_bytes ||
      !is_inside(segment, offset_bytes, slots, slot_bytes))
    return false;
  return flag_is_set(segment, offset_bytes + std::uint64_t{head} * slot_bytes);
}

}  // namespace

bool something_arrived(std::span<const std::byte> segment) noexcept {
  if (segment.size() < sizeof(SegmentHeader)) return false;
  const auto& header = *reinterpret_cast<const SegmentHeader*>(segment.data());
  if (__atomic_load_n(&header.magic, __ATOMIC_ACQUIRE) != segment_magic)
    return false;  // H1, pairs with S1
  if (header.version != layout_version) return false;

  const std::uint64_t table = header.ring_table_offset_bytes;
  const std::uint32_t entries = header.ring_entries;
  if (entries <= ring_entries_max && table % alignof(RingArea) == 0 &&
      is_inside(segment, table, entries, sizeof(RingArea))) {
    const auto* areas = reinterpret_cast<const RingArea*>(segment.data() + table);
    for (std::uint32_t i = 0; i < entries; ++i) {
      if (ring_has_something(segment, areas[i])) return true;
    }
  }
  const std::uint64_t channel = header.channel_offset_bytes;
  const std::uint32_t buffer_bytes = header.channel_buffer_bytes;
  const std::uint32_t buffers = header.channel_buffers;
  if (buffer_bytes < header_bytes || !is_inside(segment, channel, buffers, buffer_bytes))
    return false;
  for (std::uint32_t i = 0; i < buffers; ++i) {
    if (flag_is_set(segment, channel + std::uint64_t{i} * buffer_bytes)) return true;
  }
  return false;
}

}  // namespace overlap::ring
