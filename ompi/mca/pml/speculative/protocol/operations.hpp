// What the protocol knows of one send, one receive and one message that has arrived without a
// receive.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "headers.hpp"
#include "intrusive.hpp"
#include "rendezvous.hpp"

namespace overlap::speculative {

struct Peer;
class ArrivedPool;

inline constexpr std::int32_t any_source = -1;  // MPI_ANY_SOURCE in Open MPI
inline constexpr std::int32_t any_tag =
    -1;  // MPI_ANY_TAG; matches only tags >= 0: negative tags belong to the library itself

/// Memory of the other side as a control message described it.
struct RemoteMemory {
  std::uint64_t address = 0;
  std::uint16_t key_bytes = 0;
  bool accessible = false;     ///< false: only fragments can get there
  const void* rail = nullptr;  ///< what the description came over, for the caller
  std::array<std::byte, key_max_bytes> key{};
};

/// @param key  at most key_max_bytes (checked by find_fault)
/// @param rail  what the description came over
[[nodiscard]] inline RemoteMemory remote_memory(std::uint64_t address, bool accessible,
                                                std::span<const std::byte> key,
                                                const void* rail) noexcept {
  RemoteMemory memory;
  memory.rail = rail;
  memory.address = address;
  memory.accessible = accessible;
  memory.key_bytes = static_cast<std::uint16_t>(key.size());
  if (!key.empty()) std::memcpy(memory.key.data(), key.data(), key.size());
  return memory;
}

/// A send that goes by rendezvous, or eagerly with an acknowledgement.
struct SendOp {
  Peer* peer = nullptr;
  std::int32_t tag = 0;
  std::uint64_t length_bytes = 0;
  Handle handle = 0;
  SendState state = SendState::idle;
  bool caller_waits = false;     ///< in MPI until it ends, and could push it; set by the caller
  bool eager_sized = false;      ///< could have gone eagerly; set by the caller
  bool synchronous = false;      ///< may not end before a receive matches it
  bool awaiting_sync = false;    ///< an eager synchronous send that nobody has matched yet
  std::uint32_t sequence = 0;    ///< its place in the forward stream
  std::uint64_t started_ns = 0;  ///< while deferred
  std::uint64_t decide_ns = 0;   ///< while deferred: when it goes by RTS
  Handle receive = 0;            ///< the receive that the data goes to, once known; 0: it is read
  std::uint64_t take_bytes = 0;  ///< how much of it the receiver takes
  RemoteMemory target;
};

/// A receive.
struct ReceiveOp {
  Link link;  ///< in one queue of posted receives
  std::int32_t source = any_source;
  std::int32_t tag = any_tag;
  std::uint64_t order = 0;  ///< of posting, in its communicator
  Peer* peer = nullptr;     ///< of the source, once known
  std::uint64_t capacity_bytes = 0;
  bool speculate = false;      ///< predicts rendezvous and may send an RTR
  bool found_by_look = false;  ///< its message was not there before the look at the network that
                               ///< ends where it is posted; set by the caller
  bool names_memory = true;    ///< its RTR does: the sender may write into the buffer at any time.
                               ///< The caller says so when it encodes the RTR
  ReceiveState state = ReceiveState::idle;
  std::uint32_t position = 0;  ///< among the offered receives of its envelope
  Handle handle = 0;
  // Filled by the match.
  std::int32_t matched_source = any_source;
  std::int32_t matched_tag = any_tag;
  std::uint64_t length_bytes = 0;   ///< of the message, may exceed the capacity
  std::uint64_t coming_bytes = 0;   ///< of it, by fragments, once matched
  std::uint64_t arrived_bytes = 0;  ///< pushed fragments, also before the RTR-ACK
  std::uint32_t done_parts = 0;     ///< DONEs of a striped transfer that have come
  bool data_done = false;           ///< DONE, also before the RTR-ACK
  bool sender_waits = false;        ///< matched an RTS whose caller is in MPI until it ends
  Handle send = 0;
  RemoteMemory source_memory;

  [[nodiscard]] bool truncated() const noexcept { return length_bytes > capacity_bytes; }
  [[nodiscard]] std::uint64_t take_bytes() const noexcept {
    return truncated() ? capacity_bytes : length_bytes;
  }
};

/// The DONE that ends a write.
[[nodiscard]] inline DoneHeader done_header(const SendOp& op) noexcept {
  return {kind_version(Kind::done), flag::to_receiver, 0, 0, op.receive};
}
/// The DONE that ends a read.
[[nodiscard]] inline DoneHeader done_header(const ReceiveOp& op) noexcept {
  const std::uint8_t flags = op.found_by_look ? flag::just_missed : std::uint8_t{0};
  return {kind_version(Kind::done), flags, 0, 0, op.send};
}

/// A message without a receive: in Unexq (P1.5), or taken out of it by a matched probe.
struct Arrived {
  Link by_tag;      ///< Peer::unexpected
  Link by_peer;     ///< Peer::unexpected_order (user tags only)
  Link any_by_tag;  ///< Communicator::unexpected_by_tag
  Link any;         ///< Communicator::unexpected_order (user tags only)
  Peer* peer = nullptr;
  std::int32_t tag = 0;
  Kind kind = Kind::eager;
  std::uint8_t flags = 0;
  bool answered = false;  ///< an RTS that crossed the RTR of a cancelled receive
  bool found = false;     ///< by a probe, while something was left (Protocol::note_found)
  std::uint16_t hazard_epoch = 0;
  std::uint64_t length_bytes = 0;
  Handle send = 0;
  std::uint64_t arrived_ns = 0;  ///< rts; 0: not known
  Handle ghost = 0;              ///< rtr_ack: of the ghost that collects the payload
  RemoteMemory source_memory;
  std::uint64_t payload_bytes = 0;

  ArrivedPool* pool = nullptr;  ///< where it came from
  std::uint64_t room_bytes = 0;

  [[nodiscard]] std::byte* payload() noexcept { return reinterpret_cast<std::byte*>(this + 1); }

  static void destroy(Arrived* arrived) noexcept;
};

/// Memory of unexpected messages: kept by size for the next ones, up to a bound.
class ArrivedPool {
 public:
  ArrivedPool() = default;
  ArrivedPool(const ArrivedPool&) = delete;
  ArrivedPool& operator=(const ArrivedPool&) = delete;
  ~ArrivedPool();

  /// Make one with room for n bytes of payload behind it; throws std::bad_alloc.
  [[nodiscard]] Arrived* make(std::uint64_t payload_bytes);
  [[nodiscard]] std::uint64_t kept_bytes() const noexcept { return kept_bytes_; }

 private:
  friend struct Arrived;
  static constexpr std::uint64_t kept_max_bytes = std::uint64_t{1} << 22U;
  static constexpr std::uint64_t smallest_bytes = 64;
  static constexpr std::size_t classes = 11;  // 64 B to 64 KiB, the largest eager messages
  struct Free {
    Free* next;
  };
  void take_back(Arrived* arrived) noexcept;

  std::array<Free*, classes> free_{};
  std::uint64_t kept_bytes_ = 0;
};

}  // namespace overlap::speculative
