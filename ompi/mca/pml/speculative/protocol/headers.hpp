// The messages on the wire: fixed-size headers, their layout and the check that every arriving one passes before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace overlap::speculative {

/// Layout version; the upper half of the first byte of every message. Peers with another one are refused.
inline constexpr std::uint8_t wire_version = 1;

/// Longest registration key that a message can carry behind its header.
inline constexpr std::size_t key_max_bytes = 64;

/// What a message says. Three families (docs/design/matching.md):
/// forward (in send order, per communicator and destination), reverse (in order, per communicator and source),
/// targeted (names one request; no order).
enum class Kind : std::uint8_t {
  eager = 1,       ///< forward: envelope and payload
  eager_sync = 2,  ///< forward: the same, the sender waits for a sync_ack
  rts = 3,         ///< forward: request to send (P1.2)
  rtr_ack = 4,     ///< forward: the send that would have been an RTS uses an RTR (P1.6)
  revoke_ack = 5,  ///< forward: no RTR of this envelope will be written to any more
  rtr = 6,         ///< reverse: request to receive (P1.3)
  rts_ack = 7,     ///< reverse: an RTS was matched by a receive that has sent no RTR (P1.6)
  revoke = 8,      ///< reverse: forget every RTR of this envelope
  grant = 9,       ///< targeted at a send: the receiver cannot read; write or push to it
  frag = 10,       ///< targeted at a receive: one piece of the payload
  done = 11,       ///< targeted: the data has been moved (P1.2, P1.3)
  sync_ack = 12,   ///< targeted at a send: a synchronous eager message was matched
};

/// Bits of `flags`.
namespace flag {
inline constexpr std::uint8_t hazard_stop =
    0x01;  ///< rts: stop-RTR (P1.8); rts_ack: answers such an RTS
inline constexpr std::uint8_t hazard_resume = 0x02;  ///< rts: resume-RTR (P1.8)
inline constexpr std::uint8_t adapt_stop =
    0x04;  ///< rts: the speculation does not pay for this envelope (P1.11)
inline constexpr std::uint8_t adapt_resume = 0x08;  ///< rts: try again (P1.11)
inline constexpr std::uint8_t data_done = 0x10;  ///< rtr_ack: the payload is already in the buffer
inline constexpr std::uint8_t no_memory =
    0x20;  ///< rts, rtr, grant: no address to access; the payload must be pushed
inline constexpr std::uint8_t to_receiver = 0x40;  ///< done: names a receive, otherwise a send
inline constexpr std::uint8_t acknowledging =
    0x80;  ///< rtr: its sender acknowledges RTSs and stops on stop-RTR (P1.6, P1.8)
}  // namespace flag

/// Names a request of the process that made it; 0 names none. Lower half: slot; upper half: generation of the slot.
using Handle = std::uint64_t;

/// Forward and reverse messages start with this.
struct SequencedHeader {
  std::uint8_t kind_version;  ///< Kind | wire_version << 4
  std::uint8_t flags;
  std::uint16_t context;  ///< communicator
  std::int32_t
      source;  ///< sender of this header, rank in the communicator (remote group: as the receiver counts)
  std::int32_t tag;
  std::uint16_t sequence;  ///< position in its stream, modulo 2^16
  std::uint16_t
      incarnation;  ///< forward: the sender's incarnation of the communicator; reverse: the destination's, echoed
};
static_assert(sizeof(SequencedHeader) == 16);
static_assert(offsetof(SequencedHeader, tag) == 8 && offsetof(SequencedHeader, sequence) == 12);

struct EagerSyncHeader {
  SequencedHeader head;
  Handle send;
};
static_assert(sizeof(EagerSyncHeader) == 24);

struct RtsHeader {
  SequencedHeader head;
  std::uint64_t length_bytes;
  Handle send;
  std::uint64_t address;
  std::uint16_t key_bytes;     ///< key follows the header
  std::uint16_t hazard_epoch;  ///< echoed by rts_ack
  std::uint32_t zero;
};
static_assert(sizeof(RtsHeader) == 48);

struct RtrHeader {
  SequencedHeader head;
  std::uint64_t capacity_bytes;
  Handle receive;
  std::uint64_t address;
  std::uint32_t base_sequence;  ///< the receiver had seen every forward message before this one
  std::uint16_t index;  ///< the buffer is for message number `index` of the envelope from there on
  std::uint16_t key_bytes;  ///< key follows the header
};
static_assert(sizeof(RtrHeader) == 48);

struct RtrAckHeader {
  SequencedHeader head;
  std::uint64_t length_bytes;
  Handle receive;
};
static_assert(sizeof(RtrAckHeader) == 32);

struct RtsAckHeader {
  SequencedHeader head;
  std::uint16_t hazard_epoch;
  std::uint16_t zero[3];
};
static_assert(sizeof(RtsAckHeader) == 24);

/// revoke and revoke_ack: the envelope is all they say.
struct RevokeHeader {
  SequencedHeader head;
};
static_assert(sizeof(RevokeHeader) == 16);

/// Targeted messages start with this.
struct TargetedHeader {
  std::uint8_t kind_version;
  std::uint8_t flags;
  std::uint16_t key_bytes;
  std::uint32_t zero;
  Handle target;
};
static_assert(sizeof(TargetedHeader) == 16);

struct GrantHeader {
  TargetedHeader head;
  Handle receive;
  std::uint64_t address;
  std::uint64_t length_bytes;  ///< how much the receiver takes
};
static_assert(sizeof(GrantHeader) == 40);

struct FragHeader {
  TargetedHeader head;
  std::uint64_t offset_bytes;
};
static_assert(sizeof(FragHeader) == 24);

/// done and sync_ack carry nothing more.
using DoneHeader = TargetedHeader;

/// Largest header without its key.
inline constexpr std::size_t header_max_bytes = 48;

[[nodiscard]] constexpr std::uint8_t kind_version(Kind kind) noexcept {
  return static_cast<std::uint8_t>(static_cast<unsigned>(kind) | unsigned{wire_version} << 4U);
}
[[nodiscard]] constexpr Kind kind_of(std::uint8_t first_byte) noexcept {
  return static_cast<Kind>(first_byte & 0x0fU);
}
[[nodiscard]] constexpr bool is_forward(Kind kind) noexcept {
  return kind >= Kind::eager && kind <= Kind::revoke_ack;
}
[[nodiscard]] constexpr bool is_reverse(Kind kind) noexcept {
  return kind >= Kind::rtr && kind <= Kind::revoke;
}
[[nodiscard]] constexpr bool is_targeted(Kind kind) noexcept {
  return kind >= Kind::grant && kind <= Kind::sync_ack;
}

/// Size of the header of `kind`, without key and payload; 0 for a kind that does not exist.
[[nodiscard]] constexpr std::size_t header_bytes(Kind kind) noexcept {
  switch (kind) {
    case Kind::eager: return sizeof(SequencedHeader);
    case Kind::eager_sync: return sizeof(EagerSyncHeader);
    case Kind::rts: return sizeof(RtsHeader);
    case Kind::rtr_ack: return sizeof(RtrAckHeader);
    case Kind::revoke_ack:
    case Kind::revoke: return sizeof(RevokeHeader);
    case Kind::rtr: return sizeof(RtrHeader);
    case Kind::rts_ack: return sizeof(RtsAckHeader);
    case Kind::grant: return sizeof(GrantHeader);
    case Kind::frag: return sizeof(FragHeader);
    case Kind::done:
    case Kind::sync_ack: return sizeof(TargetedHeader);
  }
  return 0;
}

/// Copy a header out of a message whose length has been checked.
template <class Header>
[[nodiscard]] Header load(std::span<const std::byte> message) noexcept {
  Header header;
  std::memcpy(&header, message.data(), sizeof header);
  return header;
}

/// Look at a message that came from the network, before anything in it is believed.
///
/// @param message  the whole message, header first
/// @returns  nullptr when version, kind, length, flags and key length fit together, otherwise what is wrong with it
/// @source   issue "Foundation", wire headers: checked on arrival
[[nodiscard]] const char* find_fault(std::span<const std::byte> message) noexcept;

/// The fields of a message, for an error report; never reads behind its end.
[[nodiscard]] std::string describe(std::span<const std::byte> message);

}  // namespace overlap::speculative
