// The node area: what a process shows the others of its node, word by word.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace overlap::node {

/// Raised with every change of the layout; areas of another version are not used.
inline constexpr std::uint32_t area_version = 1;
inline constexpr std::uint32_t area_magic = 0x4f564c50;  // "OVLP"

inline constexpr std::size_t waits_max = 64;
inline constexpr std::size_t arrivals_max = 64;
inline constexpr std::uint32_t no_kernel_rank = UINT32_MAX;

/// What the interrupt thread of a process is doing.
enum class Doze : std::uint32_t {
  awake,    ///< it looks for messages, or is about to
  parked,   ///< nothing is wanted: it sleeps until a call rings
  napping,  ///< it wakes by itself, soon
  armed,    ///< it sleeps until something arrives: who sends what it waits for wakes it
  claimed   ///< it sleeps, and somebody who has claimed the wake is about to ring
};

/// A full barrier. ThreadSanitizer knows no fences.
inline void full_fence() noexcept {
#if defined(__SANITIZE_THREAD__)
  static std::atomic<std::uint32_t> word{0};
  word.fetch_add(0, std::memory_order_seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// An envelope in two words (wake.hpp knows the fields). A reader that finds `second` changed has
/// read two halves.
struct EnvelopeWords {
  std::atomic<std::uint64_t> first{0};   ///< context, tag
  std::atomic<std::uint64_t> second{0};  ///< source, kind, generation; 0: none
};
static_assert(sizeof(EnvelopeWords) == 16);

/// One process's area: a sealed memory file that its owner makes, and processes of the same user on
/// the same node map. It lives as long as somebody has it open: no crash leaves one behind.
///
/// Nobody but the owner depends on its contents: garbage in it costs wakes, or their absence.
///
/// Ownership
///   magic .. area_bytes  owner, before anybody knows the area
///   bell_*, kernel_*     owner, once, when the interrupt thread is made
///   doze                 owner; whoever wakes it: armed -> claimed
///   turns                owner
///   listed, unlisted, waits    owner, under the progress lock
///   claimed, full, arrivals    a sender claims a cell, fills it and marks it full; the helper
///                              empties full cells and frees them
///   watched_until_ms     the helper; owner: 0 when the helper has died
///   wakes, wakes_futile  wakes: whoever wakes; wakes_futile: owner. Statistics
/// Orders
///   A1 bell_inode.store(release) -> A2 load(acquire): pid, bell_* and kernel_* before the inode
///   A3 doze: see wake.hpp
///   A4 waits[i] written, listed bit set (release) -> A5 listed.load(acquire)
///   A6 arrivals[i] written, full bit set (seq_cst) -> A7 full.exchange(acquire), by the helper
///   A8 claimed bit cleared (release), by the helper -> A9 claimed.fetch_or(acquire), by a sender
struct alignas(64) Area {
  static void fence() noexcept { full_fence(); }

  std::uint32_t magic = 0;
  std::uint32_t version = 0;
  std::uint32_t area_bytes = 0;
  std::int32_t pid = 0;
  std::int32_t bell_fd = -1;  ///< the owner's descriptor that rings the bell
  std::uint64_t bell_device = 0;
  std::uint64_t kernel_job = 0;                ///< of the owner, if kernel_rank is one
  std::uint32_t kernel_rank = no_kernel_rank;  ///< under which it sleeps in the kernel module
  std::atomic<std::uint64_t> bell_inode{0};    ///< 0: no thread to wake yet

  alignas(64) std::atomic<Doze> doze{Doze::awake};
  std::atomic<std::uint32_t> watched_until_ms{0};
  std::atomic<std::uint64_t> wakes{0};
  std::atomic<std::uint64_t> wakes_futile{0};

  /// Progress by MPI threads while something is wanted; wraps.
  alignas(64) std::atomic<std::uint32_t> turns{0};

  alignas(64) std::atomic<std::uint64_t> listed{0};  ///< bit i: waits[i] is in use
  std::atomic<std::uint32_t> unlisted{0};            ///< waits that found no place: all match
  alignas(64) std::array<EnvelopeWords, waits_max> waits;

  alignas(64) std::atomic<std::uint64_t> claimed{0};
  std::atomic<std::uint64_t> full{0};
  alignas(64) std::array<EnvelopeWords, arrivals_max> arrivals;
};
static_assert(offsetof(Area, doze) == 64 && offsetof(Area, turns) == 128 &&
              offsetof(Area, listed) == 192 && offsetof(Area, waits) == 256 &&
              offsetof(Area, claimed) == 1280 && offsetof(Area, arrivals) == 1344);
static_assert(sizeof(Area) == 2368);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
              std::atomic<Doze>::is_always_lock_free);

}  // namespace overlap::node
