// The messages on the wire: fixed-size headers, their layout and the check that every arriving one
// passes before it is used.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

namespace overlap::speculative {

/// Layout version; the upper half of the first byte of every message. Peers with another one are
/// refused.
inline constexpr std::uint8_t wire_version = 2;

/// Longest registration key that a message can carry behind its header.
inline constexpr std::size_t key_max_bytes = 64;

/// What a message says. Three families (docs/design/matching.md):
/// forward (in send order, per communicator and destination), reverse (in order, per communicator
/// and source), targeted (names one request; no order).
enum class Kind : std::uint8_t {
  eager = 1,       ///< forward: envelope and payload
  eager_sync = 2,  ///< forward: the same, the sender waits for a sync_ack
  rts = 3,         ///< forward: request to send (P1.2)
  rtr_ack = 4,     ///< forward: the send that would have been an RTS uses an RTR (P1.6)
  revoke_ack = 5,  ///< forward: no RTR of this envelope will be written to any more
  stream_end = 6,  ///< forward: the sender has freed the communicator, this is its last message
  rtr = 7,         ///< reverse: request to receive (P1.3)
  rts_ack = 8,     ///< reverse: an RTS was matched by a receive that has sent no RTR (P1.6)
  revoke = 9,      ///< reverse: forget every RTR of this envelope
  grant = 10,      ///< targeted at a send: the receiver cannot read; write or push to it
  frag = 11,       ///< targeted at a receive: one piece of the payload
  done = 12,       ///< targeted: the data has been moved (P1.2, P1.3)
  sync_ack = 13,   ///< targeted at a send: a synchronous eager message was matched
  era = 14,        ///< no message: a prefix of a forward message (EraPrefix)
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
inline constexpr std::uint8_t eager_sized =
    0x10;  ///< rts: its sender waits for its receiver to come to MPI, not for a receive
inline constexpr std::uint8_t synchronous =
    0x80;  ///< rts, with eager_sized: it waits for a receive all the same
inline constexpr std::uint8_t no_memory =
    0x20;  ///< rts, rtr, grant: no address to access; the payload must be pushed
inline constexpr std::uint8_t to_receiver = 0x40;  ///< done: names a receive, otherwise a send
inline constexpr std::uint8_t sender_waits =
    0x40;  ///< rts: its caller sits in MPI until it ends, and could push it
inline constexpr std::uint8_t acknowledging =
    0x80;  ///< rtr: its sender acknowledges RTSs and stops on stop-RTR (P1.6, P1.8)
inline constexpr std::uint8_t just_missed =
    0x01;  ///< done to a send, grant: its RTS came so shortly before the receive was posted that an
           ///< RTR would have crossed it (P1.14)
inline constexpr std::uint8_t nobody_waits =
    0x02;  ///< revoke: its receive has been cancelled already
inline constexpr std::uint8_t speculation_off =
    0x01;  ///< era: the sender uses no RTRs and sends none (P1.12)
}  // namespace flag

/// Names a request of the process that made it; 0 names none. Lower half: slot; upper half:
/// generation of the slot.
using Handle = std::uint64_t;

/// Where contexts begin that only communicators with an agreed incarnation have; several may have
/// the same one at a time. @see Streams
inline constexpr std::uint32_t first_agreed_context = 0x8000;

/// Forward and reverse messages start with this.
struct SequencedHeader {
  std::uint8_t kind_version;  ///< Kind | wire_version << 4
  std::uint8_t flags;
  std::uint16_t context;  ///< communicator
  std::int32_t source;    ///< sender of this header, rank in the communicator (remote group: as the
                          ///< receiver counts)
  std::int32_t tag;
  std::uint16_t sequence;     ///< position in its stream, modulo 2^16
  std::uint16_t incarnation;  ///< forward: the sender's incarnation of the communicator; reverse:
                              ///< the destination's, echoed
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

/// revoke, revoke_ack and stream_end: the envelope is all they say (of a stream_end the tag is
/// reserved).
struct RevokeHeader {
  SequencedHeader head;
};
static_assert(sizeof(RevokeHeader) == 16);

/// Stands before the header of a forward message: of the first one of its stream, and of each first
/// one since its sender's era has grown (docs/design/streams.md).
struct EraPrefix {
  std::uint8_t kind_version;
  std::uint8_t flags;
  std::uint16_t zero;
  std::uint32_t era;      ///< of the sender
  std::uint64_t process;  ///< the sender's, the same in every communicator
};
static_assert(sizeof(EraPrefix) == 16);

/// Targeted messages start with this.
struct TargetedHeader {
  std::uint8_t kind_version;
  std::uint8_t flags;
  std::uint16_t key_bytes;
  std::uint32_t parts;  ///< done: so many of them end the transfer, one by each rail; 0 means 1
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
  return kind >= Kind::eager && kind <= Kind::stream_end;
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
    case Kind::stream_end:
    case Kind::revoke: return sizeof(RevokeHeader);
    case Kind::era: return sizeof(EraPrefix);
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

/// A message without its prefix. @param message  passed find_fault
[[nodiscard]] inline std::span<const std::byte> behind_prefix(
    std::span<const std::byte> message) noexcept {
  const bool prefixed = kind_of(std::to_integer<std::uint8_t>(message[0])) == Kind::era;
  return prefixed ? message.subspan(sizeof(EraPrefix)) : message;
}

/// Is it the first that its sender has sent in a communicator? Now and then a later one, too: the
/// sequence wraps. @param message  passed find_fault
[[nodiscard]] inline bool begins_stream(std::span<const std::byte> message) noexcept {
  const auto own = behind_prefix(message);
  return is_forward(kind_of(std::to_integer<std::uint8_t>(own[0]))) &&
         load<SequencedHeader>(own).sequence == 0;
}

/// A header to be sent, behind an EraPrefix when it needs one.
template <class Header>
struct Prefixed {
  EraPrefix prefix;  ///< when with_prefix
  Header header;
  bool with_prefix;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept {
    static_assert(offsetof(Prefixed, header) == sizeof(EraPrefix));
    const auto* whole = reinterpret_cast<const std::byte*>(this);
    if (with_prefix) [[unlikely]]
      return {whole, sizeof(EraPrefix) + sizeof(Header)};
    return {whole + sizeof(EraPrefix), sizeof(Header)};
  }
};

/// Memory of this process as a message describes it to the other side.
struct MemoryDescription {
  std::uint64_t address = 0;
  std::span<const std::byte> key;  ///< at most key_max_bytes
};

/// A control message, complete but for the memory that an RTS, RTR or GRANT describes.
struct ControlMessage {
  EraPrefix prefix;  ///< when with_prefix
  std::array<std::byte, header_max_bytes> header;
  std::uint8_t header_bytes = 0;
  bool with_prefix = false;

  [[nodiscard]] Kind kind() const noexcept {
    return kind_of(std::to_integer<std::uint8_t>(header[0]));
  }
  [[nodiscard]] bool describes_memory() const noexcept {
    return kind() == Kind::rts || kind() == Kind::rtr || kind() == Kind::grant;
  }
  /// A DONE of a transfer that ends with so many of them, one by each rail.
  void set_parts(std::uint32_t parts) noexcept {
    std::memcpy(header.data() + offsetof(TargetedHeader, parts), &parts, sizeof parts);
  }
};

/// Longest control message.
inline constexpr std::size_t control_max_bytes =
    sizeof(EraPrefix) + header_max_bytes + key_max_bytes;

/// Write a control message as it goes to the network.
///
/// @param memory  of the request, when the message describes memory; nullptr: nothing that the
/// other side could access
/// @returns  bytes written
[[nodiscard]] std::size_t encode(const ControlMessage& control, const MemoryDescription* memory,
                                 std::span<std::byte, control_max_bytes> out) noexcept;

/// Look at a message that came from the network, before anything in it is believed.
///
/// @param message  the whole message, header first
/// @returns  nullptr when version, kind, length, flags and key length fit together, otherwise what
/// is wrong with it
[[nodiscard]] const char* find_fault(std::span<const std::byte> message) noexcept;

/// The fields of a message, for an error report; never reads behind its end.
[[nodiscard]] std::string describe(std::span<const std::byte> message);

}  // namespace overlap::speculative
