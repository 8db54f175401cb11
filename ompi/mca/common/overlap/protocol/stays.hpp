// How long an MPI thread has stayed inside MPI, and whether others use its processor.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ompi/mca/common/overlap/protocol/interrupt_loop.hpp"

namespace overlap {

/// By how much an MPI thread that stays inside MPI puts wakes of the interrupt thread off (P4.5).
///
/// It says every few microseconds that it is still there. Between two of these words it may have
/// been outside, computing: then it has used its processor for longer than its turns take, or has
/// slept as somebody does who lets other threads compute. Or others have the processor for part of
/// the time: then each wake costs it a time slice, and it comes too late for timers of that length.
///
/// @thread  one at a time
class Stays {
 public:
  /// What the system knows of the thread that is inside.
  struct Usage {
    const void* thread = nullptr;
    std::uint64_t processor_ns = 0;  ///< that it has used
    std::uint32_t sleeps = 0;        ///< times that it has given the processor away; wraps
    std::uint64_t napped_ns = 0;     ///< inside: such naps are no sleeps
  };
  /// A crowd that has not been met for so long has gone: many time slices.
  static constexpr std::uint64_t remembered_ns = 100'000'000;

  /// It is inside.
  /// @param turns  that MPI threads have taken; wraps
  /// @param read   () -> Usage, of the calling thread; called each 200 us at most
  /// @returns  by how much to put wakes off: as long as it has been inside, from nap_min_ns to
  ///           nap_max_ns; longer, up to put_off_max_ns, where others use its processor
  template <class Read>
  [[nodiscard]] std::uint32_t note(std::uint64_t now_ns, std::uint32_t turns, Read&& read) {
    if (std::exchange(has_left_, false)) since_ns_ = now_ns;
    look(now_ns, turns, read);
    const std::uint64_t inside_ns = std::clamp<std::uint64_t>(
        now_ns - since_ns_, InterruptLoop::nap_min_ns, InterruptLoop::nap_max_ns);
    return std::max(static_cast<std::uint32_t>(inside_ns), crowd_ns(now_ns));
  }
  /// By how much for others' sake. 0: it has its processor for itself, or was outside
  [[nodiscard]] std::uint32_t crowd_ns(std::uint64_t now_ns) const noexcept {
    return now_ns - crowded_at_ns_ > remembered_ns ? 0 : crowd_ns_;
  }
  /// A call leaves with new work: what follows is another stay.
  template <class Read>
  void leave(std::uint64_t now_ns, std::uint32_t turns, Read&& read) {
    has_left_ = true;
    look(now_ns, turns, read);
  }

 private:
  struct Known {
    std::uint64_t now_ns = 0;
    Usage usage;
  };
  static constexpr std::uint64_t known_for_ns = 200'000;
  // What calls and turns with much data take at most.
  static constexpr std::uint64_t calls_max_ns = 1'000'000;
  static constexpr std::uint64_t turn_max_ns = 60'000;
  // Several time slices.
  static constexpr std::uint64_t observed_ns = 20'000'000;
  static constexpr std::uint32_t crowd_min_ns = 2 * InterruptLoop::nap_max_ns;

  template <class Read>
  void look(std::uint64_t now_ns, std::uint32_t turns, Read&& read) {
    if (now_ns - known_.now_ns >= known_for_ns) judge({now_ns, read()}, turns);
    last_ns_ = now_ns;
    last_turns_ = turns;
  }
  void judge(const Known& now, std::uint32_t turns) noexcept {
    const bool computed = has_computed(now, turns - last_turns_);
    known_ = now;
    if (computed) {
      since_ns_ = now.now_ns;
      crowd_ns_ = 0;
      first_ = now;
    } else if (now.now_ns - first_.now_ns >= observed_ns) {
      if (was_crowded(first_, now)) {
        crowd_ns_ =
            std::clamp(2 * crowd_ns(now.now_ns), crowd_min_ns, InterruptLoop::put_off_max_ns);
        crowded_at_ns_ = now.now_ns;
      }
      first_ = now;
    }
  }
  /// @param turns  since the last word
  [[nodiscard]] bool has_computed(const Known& now, std::uint32_t turns) const noexcept {
    // A nap that ended before it slept makes the difference negative.
    const auto sleeps = static_cast<std::int32_t>(now.usage.sleeps - known_.usage.sleeps);
    if (now.usage.thread != known_.usage.thread || sleeps > 0) return true;
    const std::uint64_t before_ns = last_ns_ - known_.now_ns;  // inside
    return used_ns(known_, now) >= before_ns + calls_max_ns + turns * turn_max_ns;
  }
  /// Had others the processor for a quarter of the time?
  [[nodiscard]] static bool was_crowded(const Known& before, const Known& now) noexcept {
    const std::uint64_t gone_ns = now.now_ns - before.now_ns;
    const std::uint64_t napped_ns = now.usage.napped_ns - before.usage.napped_ns;
    return used_ns(before, now) + napped_ns < gone_ns / 4 * 3;
  }
  [[nodiscard]] static std::uint64_t used_ns(const Known& before, const Known& now) noexcept {
    return now.usage.processor_ns - before.usage.processor_ns;
  }

  std::uint64_t since_ns_ = 0;  ///< the beginning of the stay
  bool has_left_ = false;
  std::uint64_t last_ns_ = 0;  ///< the last word
  std::uint32_t last_turns_ = 0;
  Known known_;  ///< not long before
  Known first_;  ///< since when others' use of the processor is observed
  std::uint64_t crowded_at_ns_ = 0;
  std::uint32_t crowd_ns_ = 0;
};

}  // namespace overlap
