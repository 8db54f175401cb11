// Layout of what peers write to each other, and of the memory that another process of the node
// reads (docs/design/ring.md).
//
// A slot of a ring and a message of the send/receive channel begin alike:
//   channel   [MessageHeader 16][payload size_bytes]
//             the completion tells that all is there
//   ring      [MessageHeader 16][payload size_bytes][...][tail 1]
//             rounded up to whole lines; the tail flag is the last byte that lands
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace overlap::ring {

inline constexpr std::uint16_t layout_version = 1;
inline constexpr std::uint32_t line_bytes = 64;  ///< a tail flag is always the last byte of a line

/// Of head_flag and tail flag. Two values, so that one of them differs from whatever stands where
/// the tail flag goes (P2.2).
namespace flag_value {
inline constexpr std::uint8_t empty = 0;
inline constexpr std::uint8_t primary = 0x5a;
inline constexpr std::uint8_t secondary = 0xa5;
}  // namespace flag_value

/// Of MessageHeader::control.
namespace control_bit {
inline constexpr std::uint8_t close_ring = 1;  ///< receiver to sender: stop using my ring
inline constexpr std::uint8_t ring_closed =
    2;  ///< sender to receiver: this is the first message after my last one in the ring
inline constexpr std::uint8_t unordered =
    4;  ///< no sequence number: a chained completion; by the channel only
inline constexpr std::uint8_t in_place =
    8;  ///< the payload did not pass through the sender's slot (P3.2)
inline constexpr std::uint8_t all = 15;
}  // namespace control_bit

/// Before each message. Little endian, as the host.
struct MessageHeader {
  std::uint8_t head_flag = flag_value::empty;  ///< empty, else equal to the tail flag
  std::uint8_t tag =
      0;  ///< Open MPI's BTL tag; 0: a message of this protocol, a ControlBody follows
  std::uint8_t control = 0;  ///< control_bit
  std::uint8_t version = layout_version;
  std::uint16_t credits = 0;  ///< ring slots freed since the last time
  std::uint16_t zero = 0;
  std::uint32_t size_bytes = 0;  ///< of the payload
  std::uint32_t sequence = 0;    ///< position in the stream to this peer, both channels; wraps
};
static_assert(sizeof(MessageHeader) == 16 && alignof(MessageHeader) == 4);
static_assert(offsetof(MessageHeader, head_flag) == 0 && offsetof(MessageHeader, tag) == 1);
static_assert(offsetof(MessageHeader, control) == 2 && offsetof(MessageHeader, version) == 3);
static_assert(offsetof(MessageHeader, credits) == 4 && offsetof(MessageHeader, zero) == 6);
static_assert(offsetof(MessageHeader, size_bytes) == 8 && offsetof(MessageHeader, sequence) == 12);

inline constexpr std::uint32_t header_bytes = sizeof(MessageHeader);

/// Of ControlBody::kind.
namespace control_kind {
inline constexpr std::uint32_t credits_only =
    1;  ///< nothing but the header's credits and control bits
inline constexpr std::uint32_t ring_open = 2;  ///< receiver to sender: here is a ring for you
inline constexpr std::uint32_t ring_declined =
    3;  ///< sender to receiver: nothing will come through that ring, close it
inline constexpr std::uint32_t goodbye =
    4;  ///< the end of our connections, which comes next, is meant
}  // namespace control_kind

/// Payload of a message with tag 0, in an ordered message of the channel.
struct ControlBody {
  std::uint32_t kind = control_kind::credits_only;
  std::uint32_t slots = 0;  // the rest is of ring_open
  std::uint32_t slot_bytes = 0;
  std::uint32_t remote_key = 0;
  std::uint64_t address = 0;  ///< of slot 0, in the receiver's memory
};
static_assert(sizeof(ControlBody) == 24 && offsetof(ControlBody, slots) == 4 &&
              offsetof(ControlBody, slot_bytes) == 8);
static_assert(offsetof(ControlBody, remote_key) == 12 && offsetof(ControlBody, address) == 16);

/// Bytes of header, payload and tail flag, rounded up to whole lines: what one RDMA write carries.
/// @param payload_bytes  at most payload_max_bytes() of some slot
[[nodiscard]] constexpr std::uint32_t wire_bytes(std::uint32_t payload_bytes) noexcept {
  return (payload_bytes + header_bytes + 1 + line_bytes - 1) / line_bytes * line_bytes;
}
/// @param slot_bytes  a multiple of line_bytes, not 0
[[nodiscard]] constexpr std::uint32_t payload_max_bytes(std::uint32_t slot_bytes) noexcept {
  return slot_bytes - header_bytes - 1;
}
static_assert(wire_bytes(0) == 64 && wire_bytes(47) == 64 && wire_bytes(48) == 128 &&
              wire_bytes(payload_max_bytes(2048)) == 2048);

/// @param room_bytes  of payload: payload_max_bytes() of a slot, or what was received besides the
/// header
/// @returns  nullptr, or why the message cannot be taken, in words
[[nodiscard]] const char* find_fault(const MessageHeader& header,
                                     std::uint32_t room_bytes) noexcept;
/// The same for a ring_open. @param body  from the wire, of a kind that may be unknown
[[nodiscard]] const char* find_fault(const ControlBody& body) noexcept;

// --- The segment that the node's helper maps -------------------------------------------
//
// /dev/shm/overlap-ring.<uid>.<pid>.<boot-unique>:
//   [SegmentHeader 4096][RingArea ring_entries][rings and channel buffers, anywhere behind]
// Ownership: the process writes everything but the slots and buffers, which the device writes; the
// helper only reads. Orders
//   S1 magic, stored last with release -> H1 loaded first with acquire: the header before its use
//   S2 RingArea::state = open, stored with release -> H2 acquire: offset, slots and slot_bytes
//   before their use
// An entry that changes under the helper's eyes gives it a wrong answer at worst, never an address
// outside the segment; and it changes only while the process is awake, when nobody acts on the
// answer.

inline constexpr std::uint64_t segment_magic = 0x474e49524c52564fU;  ///< "OVRLRING" in memory
inline constexpr std::uint32_t ring_entries_max =
    1025;  ///< the largest polling set, and a member that is leaving it

/// Of RingArea::state.
namespace area_state {
inline constexpr std::uint32_t none = 0;
inline constexpr std::uint32_t open =
    1;  ///< until the memory goes: a closing ring too still gets messages
}  // namespace area_state

/// One receive ring.
struct RingArea {
  std::uint64_t offset_bytes = 0;  ///< of slot 0, from the start of the segment
  std::uint32_t slots = 0;
  std::uint32_t slot_bytes = 0;
  std::uint32_t state = area_state::none;
  std::uint32_t head =
      0;  ///< slot where the next message will be: something has arrived when its head_flag is set
  std::uint32_t peer = 0;  ///< for people who debug
  std::uint32_t zero = 0;
};
static_assert(sizeof(RingArea) == 32 && offsetof(RingArea, slots) == 8 &&
              offsetof(RingArea, slot_bytes) == 12);
static_assert(offsetof(RingArea, state) == 16 && offsetof(RingArea, head) == 20 &&
              offsetof(RingArea, peer) == 24);

/// First page of the segment. In the buffers of the channel each one whose head_flag is not empty
/// has something: the process clears the flag when it takes the completion, and before it posts the
/// buffer.
struct SegmentHeader {
  std::uint64_t magic = 0;  ///< segment_magic once all is in place
  std::uint16_t version = layout_version;
  std::uint16_t zero = 0;
  std::uint32_t owner_pid = 0;
  std::uint64_t segment_bytes = 0;
  std::uint64_t ring_table_offset_bytes = 0;  ///< of RingArea[ring_entries], a multiple of 8
  std::uint64_t channel_offset_bytes = 0;     ///< of the receive buffers of the channel
  std::uint32_t ring_entries = 0;             ///< at most ring_entries_max
  std::uint32_t channel_buffer_bytes = 0;
  std::uint32_t channel_buffers = 0;
  std::byte reserved[4096 - 52]{};
};
static_assert(sizeof(SegmentHeader) == 4096 && offsetof(SegmentHeader, version) == 8 &&
              offsetof(SegmentHeader, owner_pid) == 12);
static_assert(offsetof(SegmentHeader, segment_bytes) == 16 &&
              offsetof(SegmentHeader, ring_table_offset_bytes) == 24);
static_assert(offsetof(SegmentHeader, channel_offset_bytes) == 32 &&
              offsetof(SegmentHeader, ring_entries) == 40);
static_assert(offsetof(SegmentHeader, channel_buffer_bytes) == 44 &&
              offsetof(SegmentHeader, channel_buffers) == 48);

/// Has anything arrived that the owner of this segment has not looked at? For the helper: reads
/// only, trusts nothing.
/// @param segment  as mapped, page-aligned; all of it, or less when the file is shorter than it
/// says
[[nodiscard]] bool something_arrived(std::span<const std::byte> segment) noexcept;

}  // namespace overlap::ring
