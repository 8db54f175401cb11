// When a call that waits sleeps, and for how long.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace overlap {

/// How long to sleep next: ever longer, so that what comes at last is delayed by a small share of
/// the wait.
struct GrowingNap {
  std::uint32_t min_ns;
  std::uint32_t max_ns;
  std::uint32_t share;  ///< of the time slept

  [[nodiscard]] std::uint32_t next(std::uint64_t& slept_ns) const noexcept {
    const auto nap_ns =
        static_cast<std::uint32_t>(std::clamp<std::uint64_t>(slept_ns / share, min_ns, max_ns));
    slept_ns += nap_ns;
    return nap_ns;
  }
};

/// Naps of a call that waits where other ranks need its processor: a rank that only yields waits
/// for a rotation of the run queue in each hop, one that sleeps is put in front when it wakes.
///
/// Naps begin after many turns in a row that brought nothing. A turn with an event ends them: the
/// pieces of a large message follow one another, and a nap between two of them would take longer
/// than the piece.
class IdleNaps {
 public:
  static constexpr std::uint32_t turns_before_naps = 2000;
  static constexpr GrowingNap nap{.min_ns = 20'000, .max_ns = 1'000'000, .share = 256};

  /// A turn has ended.
  /// @param events  so far, of any turns; may wrap
  /// @returns  how long to sleep, 0: not at all
  [[nodiscard]] std::uint32_t end_turn(std::uint32_t events) noexcept {
    if (std::exchange(events_, events) != events) {
      empty_turns_ = 0;
      slept_ns_ = 0;
      return 0;
    }
    if (empty_turns_ < turns_before_naps) {
      ++empty_turns_;
      return 0;
    }
    return nap.next(slept_ns_);
  }

 private:
  std::uint32_t events_ = 0;
  std::uint32_t empty_turns_ = 0;
  std::uint64_t slept_ns_ = 0;
};

/// Naps of a thread that waits while another thread of its process waits, too, and polls: what has
/// come it would mostly find in its place. The processor is for threads that compute.
///
/// They begin after about two milliseconds, of which the first nap is a small share, and go on
/// whatever comes for others.
class NapsBesideOther {
 public:
  static constexpr std::uint32_t turns_before_naps = 500;
  static constexpr GrowingNap nap{.min_ns = 20'000, .max_ns = 500'000, .share = 32};

  /// A turn has ended. @returns  how long to sleep, 0: not at all
  [[nodiscard]] std::uint32_t end_turn() noexcept {
    if (turns_ < turns_before_naps) {
      ++turns_;
      return 0;
    }
    return nap.next(slept_ns_);
  }

 private:
  std::uint32_t turns_ = 0;
  std::uint64_t slept_ns_ = 0;
};

}  // namespace overlap
