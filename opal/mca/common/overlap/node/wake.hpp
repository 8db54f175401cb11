// Who must be woken for what has arrived: matching by MPI's rules between arrivals and waits
// (P4.4, P4.5, P4.11).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <bit>
#include <cstdint>
#include <optional>

#include "opal/mca/common/overlap/node/layout.hpp"

namespace overlap::node {

inline constexpr std::int32_t any = -1;  ///< MPI_ANY_SOURCE, MPI_ANY_TAG

/// What is waited for, or has arrived. One matcher for all of them (P4.9).
enum class WaitKind : std::uint8_t {
  message = 1,  ///< an RTS for a posted receive: communicator, rank, tag
  answer = 2,   ///< a message that names a request of the target: always waited for
  epoch = 3,    ///< an epoch opened or a lock granted: window, target rank (P4.8, P4.11)
  step = 4      ///< a step of a collective has ended: communicator, rank, step (P4.10)
};

/// @param context  number of the communicator or window
/// @param source   rank in it, or any; as the process counts that waits
/// @param tag      or any, which matches tags that are not negative only (those are Open MPI's own)
struct Envelope {
  WaitKind kind = WaitKind::message;
  std::uint32_t context = 0;
  std::int32_t source = 0;
  std::int32_t tag = 0;

  bool operator==(const Envelope&) const = default;
};

/// Does an arrival end this wait, or bring it forward?
[[nodiscard]] constexpr bool matches(const Envelope& wait, const Envelope& arrival) noexcept {
  if (wait.kind != arrival.kind || wait.context != arrival.context) return false;
  if (wait.source != any && wait.source != arrival.source) return false;
  return wait.tag == arrival.tag || (wait.tag == any && arrival.tag >= 0);
}

/// The layout of EnvelopeWords, encoded and decoded here only.
[[nodiscard]] constexpr std::uint64_t first_word(const Envelope& each) noexcept {
  return std::uint64_t{each.context} << 32U | static_cast<std::uint32_t>(each.tag);
}
[[nodiscard]] constexpr std::uint64_t second_word(const Envelope& each,
                                                  std::uint32_t generation) noexcept {
  return std::uint64_t{static_cast<std::uint32_t>(each.source)} << 32U |
         std::uint64_t{generation & 0xffffffU} << 8U | static_cast<std::uint8_t>(each.kind);
}
[[nodiscard]] constexpr Envelope decode(std::uint64_t first, std::uint64_t second) noexcept {
  return {.kind = static_cast<WaitKind>(second & 0xffU),
          .context = static_cast<std::uint32_t>(first >> 32U),
          .source = static_cast<std::int32_t>(second >> 32U),
          .tag = static_cast<std::int32_t>(static_cast<std::uint32_t>(first))};
}

/// Read an envelope that its writer may be changing.
/// @returns  nullopt: it has changed meanwhile, or there is none
[[nodiscard]] inline std::optional<Envelope> read(const EnvelopeWords& words) noexcept {
  const std::uint64_t second = words.second.load(std::memory_order_acquire);
  const std::uint64_t first = words.first.load(std::memory_order_acquire);
  if (second == 0 || words.second.load(std::memory_order_relaxed) != second) return std::nullopt;
  return decode(first, second);
}

/// The waits of the process that owns an area (IRB, P4.2, P4.4). Bounded: a wait that finds no
/// place matches everything, so that a full table costs wakes too many and never one too few.
///
/// @thread  progress lock held for every call
class Waits {
 public:
  /// @param area  of this process, or nullptr: nobody reads them
  explicit Waits(Area* area = nullptr) noexcept : area_(area) {}

  static constexpr std::uint8_t unlisted = 0xff;
  /// @returns  its place, for remove()
  [[nodiscard]] std::uint8_t add(const Envelope& wait) noexcept {
    if (area_ == nullptr) return unlisted;
    if (listed_ == UINT64_MAX) {
      area_->unlisted.store(++unlisted_count_, std::memory_order_release);
      return unlisted;
    }
    const auto place = static_cast<std::uint8_t>(std::countr_one(listed_));
    EnvelopeWords& words = area_->waits[place];
    words.second.store(0, std::memory_order_relaxed);
    words.first.store(first_word(wait), std::memory_order_release);
    words.second.store(second_word(wait, ++generation_), std::memory_order_release);
    listed_ |= std::uint64_t{1} << place;
    area_->listed.store(listed_, std::memory_order_release);  // A4, pairs with A5
    return place;
  }
  void remove(std::uint8_t place) noexcept {
    if (area_ == nullptr) return;
    if (place == unlisted) {
      area_->unlisted.store(--unlisted_count_, std::memory_order_release);
      return;
    }
    listed_ &= ~(std::uint64_t{1} << place);
    area_->listed.store(listed_, std::memory_order_release);  // A4
  }

 private:
  Area* area_;
  std::uint64_t listed_ = 0;  ///< as in the area, which others could write to
  std::uint32_t unlisted_count_ = 0;
  std::uint32_t generation_ = 0;
};

/// Does the process of an area wait for this? @thread  any, of any process
[[nodiscard]] inline bool is_waited_for(const Area& area, const Envelope& arrival) noexcept {
  if (arrival.kind == WaitKind::answer) return true;
  if (area.unlisted.load(std::memory_order_acquire) != 0) return true;
  std::uint64_t listed = area.listed.load(std::memory_order_acquire);  // A5, pairs with A4
  for (; listed != 0; listed &= listed - 1) {
    const EnvelopeWords& words = area.waits[static_cast<std::size_t>(std::countr_zero(listed))];
    const std::optional<Envelope> wait = read(words);
    // One that is just being replaced: the new one may be the one that is meant.
    if (!wait || matches(*wait, arrival)) return true;
  }
  return false;
}

/// Become the one that wakes the process. @returns  false: it is awake, or others wake it
template <class AnyArea>
[[nodiscard]] bool claim_wake(AnyArea& target) noexcept {
  Doze expected = Doze::armed;
  return target.doze.compare_exchange_strong(expected, Doze::claimed, std::memory_order_acq_rel);
}

/// What whoever has sent a message to a process of its node has to do about it.
enum class WakeDecision : std::uint8_t {
  nothing,  ///< it progresses itself, or does not wait for this
  hand_on,  ///< a helper watches it: leave the arrival there
  ring      ///< it sleeps: claim_wake(), then ring its bell
};

/// Decide after a message has been given to the BTL, so that its receiver can find it.
///
/// The thread that arms itself looks for messages once more afterwards; a call that posts a receive
/// while the thread is armed looks, too (Interruption). So of the two, sender and receiver, one
/// sees what the other has written:
///
///   sender                         receiver
///   S1 the message is written      R1 wait listed, doze = armed
///   S2 fence                       R2 fence
///   S3 doze, waits are read        R3 the BTL is polled
///
/// Only one of several that come at once rings: claim_wake() succeeds once. Whoever claims must be
/// able to ring.
///
/// @param target  an Area, or what a model has in its place
/// @param now_ms  of the clock that the helper's watched_until_ms refers to; wraps
/// @thread  any; after the message
template <class AnyArea>
[[nodiscard]] WakeDecision decide_wake(const AnyArea& target, const Envelope& arrival,
                                       std::uint32_t now_ms) noexcept {
  target.fence();  // S2, pairs with R2
  if (target.doze.load(std::memory_order_acquire) != Doze::armed) return WakeDecision::nothing;
  if (!is_waited_for(target, arrival)) return WakeDecision::nothing;
  const std::uint32_t until_ms = target.watched_until_ms.load(std::memory_order_relaxed);
  constexpr std::uint32_t ahead_max_ms = 1000;  // more is garbage
  const bool watched = until_ms != 0 && until_ms - now_ms < ahead_max_ms;
  return watched ? WakeDecision::hand_on : WakeDecision::ring;
}

/// Leave an arrival for the helper (ICB, P4.2). A helper that stops watching looks once more after
/// it has said so; of the two, sender and helper, one sees what the other has written:
///
///   sender                         helper that stops
///   W1 the cell is marked full     W3 watched_until_ms = 0
///   W2 watched_until_ms is read    W4 full cells are emptied (stop_watching)
///
/// @returns  false: no room, or nobody watches any more. Wake it yourself
[[nodiscard]] inline bool try_leave(Area& target, const Envelope& arrival) noexcept {
  std::uint64_t claimed = target.claimed.load(std::memory_order_relaxed);
  for (;;) {
    if (claimed == UINT64_MAX) return false;
    const auto cell = static_cast<std::size_t>(std::countr_one(claimed));
    const std::uint64_t bit = std::uint64_t{1} << cell;
    if (!target.claimed.compare_exchange_weak(claimed, claimed | bit,
                                              std::memory_order_acquire))  // A9, pairs with A8
      continue;
    target.arrivals[cell].first.store(first_word(arrival), std::memory_order_relaxed);
    target.arrivals[cell].second.store(second_word(arrival, 0), std::memory_order_relaxed);
    target.full.fetch_or(bit, std::memory_order_seq_cst);                 // A6, W1
    return target.watched_until_ms.load(std::memory_order_seq_cst) != 0;  // W2, pairs with W3
  }
}

/// The helper's part: empty the arrivals of a process.
/// @param sink  called with each arrival; the area may hold garbage
/// @returns  whether there were any
template <class Sink>
bool take_each_arrival(Area& target, Sink&& sink) {
  if (target.full.load(std::memory_order_seq_cst) == 0) return false;             // W4
  const std::uint64_t full = target.full.exchange(0, std::memory_order_acquire);  // A7
  for (std::uint64_t left = full; left != 0; left &= left - 1) {
    const EnvelopeWords& words = target.arrivals[static_cast<std::size_t>(std::countr_zero(left))];
    if (const std::optional<Envelope> arrival = read(words)) sink(*arrival);
  }
  target.claimed.fetch_and(~full, std::memory_order_release);  // A8, pairs with A9
  return true;
}

/// The same, deciding for each arrival whether the process is to be woken.
/// @returns  whether one of them is waited for: the caller wakes it, by claim_wake()
[[nodiscard]] inline bool take_arrivals(Area& target) noexcept {
  bool wanted = false;
  take_each_arrival(
      target, [&](const Envelope& arrival) { wanted = wanted || is_waited_for(target, arrival); });
  return wanted;
}

/// A helper watches a process until then. @param now_ms  wraps
inline void watch_until(Area& target, std::uint32_t now_ms, std::uint32_t ahead_ms) noexcept {
  const std::uint32_t until_ms = now_ms + ahead_ms;
  target.watched_until_ms.store(until_ms == 0 ? 1 : until_ms, std::memory_order_relaxed);
}
/// It watches it no longer. Arrivals are to be taken once more afterwards: see try_leave().
inline void stop_watching(Area& target) noexcept {
  target.watched_until_ms.store(0, std::memory_order_seq_cst);  // W3, pairs with W2
}

}  // namespace overlap::node
