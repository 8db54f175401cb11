// What clients and the device process share: rings in memory that either side maps.
//
// Each ring is a sealed memfd of its own that the client makes and passes over the control socket.
// Counters run freely and wrap; an entry's place is its counter modulo the number of entries.
// Nobody waits in here: see Doorbells for how the device is woken.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "opal/fabric/fabric.hpp"

namespace overlap::fabric::soft {

inline constexpr std::uint32_t layout_version = 6;
inline constexpr std::uint32_t layout_magic = 0x6f6c7366;
inline constexpr std::size_t line_bytes = 64;

using Counter = std::atomic<std::uint32_t>;
static_assert(Counter::is_always_lock_free);

/// Begin of every shared area.
struct AreaHeader {
  std::uint32_t magic = layout_magic;
  std::uint32_t version = layout_version;
  std::uint32_t entries = 0;
  std::uint32_t zero = 0;
};

/// Must the device be woken?
namespace doze {
inline constexpr std::uint32_t awake = 0;
inline constexpr std::uint32_t asleep = 1;   ///< until it is woken, or its next timer
inline constexpr std::uint32_t napping = 2;  ///< it looks again by itself soon: wake nobody
}  // namespace doze

/// One page for all clients: does the device sleep, and does anybody wait for it?
///
/// Waking the device from another processor takes the poster ten microseconds, in which it wants to
/// compute. So as long as some client waits (polls and finds nothing), the device only naps:
/// posters leave a note, and a client that waits anyway finds it and wakes the device, on its own
/// processor.
///
/// Ownership
///   state      device awake -> asleep or napping before it sleeps and back after; clients -> awake
///              when they write to the device's eventfd
///   cpu        device: where it went to sleep. A hint: whoever posts from there moves it
///              elsewhere, whoever waits pulls it to where it waits. Relaxed: S orders it, and an
///              old value costs only time
///   waited_ns  clients that wait: when (CLOCK_MONOTONIC). A hint, relaxed
///   noted      posters 0 -> their process number when they found it napping; device -> 0 when it
///              wakes up. A hint, relaxed: what is not noticed waits for the end of the nap
/// Orders (Dekker, all sequentially consistent)
///   client: P doorbell tail, overflow  before  L state
///   device: S state  before  R doorbell tail, overflow
///   If L reads awake although the device goes to sleep, then R sees the doorbell and the device
///   does not. The same for napping, then asleep.
struct DevicePage {
  static constexpr std::uint32_t no_cpu = UINT32_MAX;

  AreaHeader header;
  alignas(line_bytes) Counter state{doze::awake};
  Counter cpu{no_cpu};
  alignas(line_bytes) std::atomic<std::int64_t> waited_ns{0};
  Counter noted{0};
};
static_assert(offsetof(DevicePage, state) == line_bytes &&
              offsetof(DevicePage, waited_ns) == 2 * line_bytes &&
              sizeof(DevicePage) == 3 * line_bytes);
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

/// One area per client: numbers of queues that the device should look at, and news for the client.
///
/// Ownership
///   tail, rings[i]  client, the latter while head <= i - entries
///   head            device
///   overflow        client 0 -> 1 when there is no room: look at every queue; device 1 -> 0 before
///                   it looks
///   events          device: counts messages on the socket that are not replies
///   armed           client 0 -> 1: write to my descriptor for the next arrival; device 1 -> 0
///                   before it writes. Both exchange, so each arm is answered at most once
/// Orders
///   D1 tail (seq_cst, see DevicePage) -> D2 tail (seq_cst): the number, and what was posted to
///      that queue, before the doorbell
///   D3 head (release) -> D4 head (acquire): reading a number before its place is written again
///   D5 events (release) -> D6 events (acquire): nothing but the hint; the socket orders the
///      messages themselves
///   D7 armed (device's exchange, acq_rel) <-> D8 armed (client's exchange, acq_rel): the device
///      stores the completion (C1) before D7, the client polls (C2) after D8. One exchange is
///      second: if it is D7, it finds 1 and the device writes; if it is D8, it reads what D7 or a
///      later one stored, and the poll sees the completion. With D7 before C1 the client could arm
///      between the two, poll in vain and sleep for ever.
struct Doorbells {
  static constexpr std::uint32_t entries = 1024;
  static constexpr std::uint32_t receive_bit =
      1U << 31U;  ///< the number is a receive queue's that was starved
  static constexpr std::uint32_t management_bit = 1U << 30U;  ///< it is a management queue's

  AreaHeader header;
  alignas(line_bytes) Counter tail{0};
  Counter overflow{0};
  alignas(line_bytes) Counter head{0};
  Counter events{0};
  alignas(line_bytes) Counter armed{0};
  alignas(line_bytes) std::uint32_t rings[entries]{};
};
static_assert(offsetof(Doorbells, tail) == 64 && offsetof(Doorbells, head) == 128 &&
              offsetof(Doorbells, armed) == 192 && offsetof(Doorbells, rings) == 256);
static_assert(sizeof(Doorbells) == 256 + 4 * Doorbells::entries);

inline constexpr std::uint32_t inline_max_bytes = 128;

/// A posted work request.
struct SendSlot {
  std::uint64_t id;
  std::uint64_t remote_address;
  std::uint64_t operand;
  std::uint64_t compare;
  std::int64_t posted_ns;  ///< CLOCK_MONOTONIC
  std::uint32_t remote_key;
  std::uint32_t immediate;
  struct Part {
    std::uint64_t address;
    std::uint32_t bytes;
    std::uint32_t local_key;
  } gather[gather_limit];
  std::uint8_t opcode;
  std::uint8_t gather_count;
  std::uint8_t flags;  ///< send_flag
  std::uint8_t zero;
  std::uint32_t inline_bytes;
  std::uint64_t reserved;
  alignas(line_bytes) std::byte inline_data[inline_max_bytes];
};
namespace send_flag {
inline constexpr std::uint8_t signalled = 1;
inline constexpr std::uint8_t fenced = 2;
inline constexpr std::uint8_t inline_data = 4;
inline constexpr std::uint8_t solicited = 8;
}  // namespace send_flag
static_assert(std::is_trivially_copyable_v<SendSlot>);
static_assert(sizeof(SendSlot) == 256 && offsetof(SendSlot, gather) == 48 &&
              offsetof(SendSlot, opcode) == 96);
static_assert(offsetof(SendSlot, inline_data) == 128);

/// Send queue of a queue pair.
///
/// Ownership  tail: client. slots[i]: client until S1 publishes i; then the device, until the
/// client has polled the completion of i or of
///            a later entry (it counts that itself; the device may read inline data until then)
///            head: device, where a counting queue takes its completions: entries before it are the
///            client's again
/// Orders     S1 tail (release) -> S2 tail (acquire): the slot before the count. The completion
/// ring's C1 -> C2, or S3 head (release) -> S4 head (acquire): the device's
///            last reading of a slot before its reuse.
struct SendRing {
  AreaHeader header;
  alignas(line_bytes) Counter tail{0};
  alignas(line_bytes) Counter head{0};
  alignas(line_bytes) SendSlot slots[1];  ///< [entries]
};
static_assert(offsetof(SendRing, head) == 128 && offsetof(SendRing, slots) == 192);

struct ReceiveSlot {
  std::uint64_t id;
  std::uint64_t address;
  std::uint32_t bytes;
  std::uint32_t local_key;
  std::uint64_t reserved;
};
static_assert(sizeof(ReceiveSlot) == 32);

/// Receive queue.
///
/// Ownership  tail: client. head: device. slots[i]: client while head <= i - entries, device after
/// R1 publishes i
///            starved: device 0 -> 1 when it found the ring empty; client 1 -> 0 when it rings the
///            doorbell
/// Orders
///   R1 tail (seq_cst) -> R2 tail (seq_cst): the slot before the count
///   R3 head (release) -> R4 head (acquire): reading a slot before its reuse
///   Dekker: client R1 before it reads starved; device sets starved before it reads R2 once more
///   (all seq_cst). Else the device might wait for a doorbell that nobody rings.
struct ReceiveRing {
  AreaHeader header;
  alignas(line_bytes) Counter tail{0};
  alignas(line_bytes) Counter head{0};
  Counter starved{0};
  alignas(line_bytes) ReceiveSlot slots[1];  ///< [entries]
};
static_assert(offsetof(ReceiveRing, head) == 128 && offsetof(ReceiveRing, slots) == 192);

struct CompletionSlot {
  std::uint64_t id;
  std::uint32_t pair_number;
  std::uint32_t pair_cookie;  ///< what the client named the queue pair
  std::uint32_t position;     ///< of the send queue entry; not for receives
  std::uint32_t bytes;
  std::uint32_t immediate;
  std::uint8_t status;
  std::uint8_t opcode;
  std::uint8_t has_immediate;
  std::uint8_t zero;
};
static_assert(sizeof(CompletionSlot) == 32);

/// Completion queue. Of a counting queue only `tail` is used: what it has counted.
///
/// Ownership  tail: device. head: client. slots[i]: device while head <= i - entries, client after
///            C1 publishes i
/// Orders
///   C1 tail (release) -> C2 tail (acquire): the slot, and the data that it reports, before the
///                                           count
///   C3 head (release) -> C4 head (acquire): reading a slot before its reuse
struct CompletionRing {
  AreaHeader header;
  alignas(line_bytes) Counter tail{0};
  alignas(line_bytes) Counter head{0};
  alignas(line_bytes) CompletionSlot slots[1];  ///< [entries]
};
static_assert(offsetof(CompletionRing, head) == 128 && offsetof(CompletionRing, slots) == 192);

/// A wait or an enable.
struct ManagementSlot {
  std::uint64_t id;  ///< of its list
  std::int64_t posted_ns;
  std::uint32_t number;  ///< of the counting queue or of the queue pair
  std::uint32_t index;
  std::uint8_t kind;       ///< Command::Kind
  std::uint8_t signalled;  ///< 1: its list's last
  std::uint8_t zero[6];
};
static_assert(sizeof(ManagementSlot) == 32);

/// Management queue.
///
/// Ownership  tail: client, which moves it by whole lists. slots[i]: client until M1 publishes i;
///            then the device, until the client has polled the completion of its list
/// Orders     M1 tail (release) -> M2 tail (acquire): the list's slots, and what it has put into
///            send and receive queues, before the count. The completion ring's C1 -> C2: the
///            device's last reading of a slot before its reuse.
struct ManagementRing {
  AreaHeader header;
  alignas(line_bytes) Counter tail{0};
  alignas(line_bytes) ManagementSlot slots[1];  ///< [entries]
};
static_assert(offsetof(ManagementRing, tail) == 64 && offsetof(ManagementRing, slots) == 128);

/// Bytes of a ring with n entries.
template <class Ring>
constexpr std::size_t ring_bytes(std::uint32_t entries) noexcept {
  return offsetof(Ring, slots) + entries * sizeof(static_cast<Ring*>(nullptr)->slots[0]);
}

}  // namespace overlap::fabric::soft
