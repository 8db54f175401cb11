// What a process and the helper of its node (ompi-progressd) say to each other.
//
// A unix socket of type SOCK_SEQPACKET with an abstract name; every request and every answer is one
// message. A client says hello with its area and stays connected; its end is the end of the
// connection. Tools ask one thing and leave.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace overlap::node {

/// Raised with every change of this file; part of the socket's name: helpers of another version are
/// not met.
inline constexpr std::uint32_t helper_version = 1;
inline constexpr std::uint32_t helper_magic = 0x4f565048;  // "OVPH"

enum class HelperAsk : std::uint32_t {
  hello = 1,   ///< with the area, and the end of a pipe that rings, if there is one -> welcome
  nudge = 2,   ///< from a client that has armed itself while the helper sleeps; no answer
  status = 3,  ///< -> done, with a descriptor to read it from (JSON)
  on = 4,      ///< -> done
  off = 5,     ///< -> done, when nobody is watched any more
  stop = 6     ///< -> done, when nobody is watched any more; the helper ends
};

struct HelperRequest {
  std::uint32_t magic = helper_magic;
  std::uint32_t version = helper_version;
  HelperAsk ask = HelperAsk::hello;
  std::int32_t local_rank = 0;     ///< of a client; shown to users only
  std::uint64_t job = 0;           ///< the same
  std::uint32_t area_version = 0;  ///< of the area that comes with hello
  std::uint32_t reserved[9] = {};
};
static_assert(std::is_trivially_copyable_v<HelperRequest> && sizeof(HelperRequest) == 64 &&
              offsetof(HelperRequest, job) == 16);

enum class HelperReply : std::uint32_t {
  welcome = 1,  ///< with the descriptor of a HelperPage
  done = 2,
  refused = 3
};

/// Why a helper does not serve a client.
enum class Refusal : std::uint32_t {
  none = 0,
  malformed = 1,      ///< a message that is none of these
  other_version = 2,  ///< of the messages or of the area
  no_area = 3,        ///< what came with hello is no area, or cannot be mapped
  full = 4,           ///< too many clients
  stopping = 5,       ///< the helper ends
  other_user = 6      ///< found by the client or by the helper
};

struct HelperAnswer {
  std::uint32_t magic = helper_magic;
  std::uint32_t version = helper_version;
  HelperReply reply = HelperReply::refused;
  Refusal refusal = Refusal::none;
  std::uint32_t reserved[12] = {};
};
static_assert(std::is_trivially_copyable_v<HelperAnswer> && sizeof(HelperAnswer) == 64);

enum class HelperState : std::uint32_t {
  spinning = 0,  ///< it looks all the time
  napping = 1,   ///< it looks now and then; senders wake their receivers themselves
  sleeping = 2,  ///< until somebody nudges it
  off = 3        ///< until it is switched on; nudges do nothing
};

/// What a helper shows its clients: a sealed memory file that only the helper can write to.
///
/// Ownership
///   state  the helper
/// Orders
///   N1 doze = armed (a client), fence -> N2 state is read: sleeping? nudge
///   N3 state = sleeping (the helper), fence -> N4 doze of each client is read: armed? do not sleep
struct alignas(64) HelperPage {
  std::uint32_t magic = helper_magic;
  std::uint32_t version = helper_version;
  std::atomic<HelperState> state{HelperState::spinning};
  std::uint32_t reserved[13] = {};
};
static_assert(sizeof(HelperPage) == 64 && std::atomic<HelperState>::is_always_lock_free);

}  // namespace overlap::node
