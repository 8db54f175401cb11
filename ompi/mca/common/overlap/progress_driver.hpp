// Who is polled, how often and how much at a time: the one place from which this process's BTLs and
// everything that stands on them make progress.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <array>
#include <cstdint>

namespace overlap {

/// Polls BTLs under the progress lock instead of opal_progress, which knows nothing of the lock.
///
/// What it takes over from Open MPI (the progress functions of BTLs; the event loop once a BTL in
/// use needs it) it gives back with give_back().
///
/// @thread  progress lock held for every call
class ProgressDriver {
 public:
  /// More work for each turn, for instance endpoints whose work waits for room. Bounded per call.
  /// @returns  events seen
  using Pollable = int (*)() noexcept;

  /// Take over the progress functions of BTLs that the BML has registered since the last call.
  void adopt_btls() noexcept;
  /// A BTL that messages of this process go through is driven by libevent (tcp): turn the loop.
  void need_events() noexcept;
  [[nodiscard]] bool turns_events() const noexcept { return event_driven_; }
  /// @param needed  call `pollable` in each turn, or no longer
  void set_pollable(Pollable pollable, bool needed) noexcept {
    pollable_ = needed ? pollable : nullptr;
    more_ = event_driven_ || pollable_ != nullptr;
  }
  /// Let opal_progress do again what it did before. After the last poll.
  void give_back() noexcept;

  /// One turn: every BTL once, the event loop when its turn has come, the pollable.
  /// @returns  events that BTLs have reported, and those noted during the turn
  int poll() {
    int count = poll_btls();
    if (more_) [[unlikely]]
      count += poll_more(false);
    events_ += static_cast<unsigned>(count);
    return count;
  }
  /// The same for a caller that looks once and decides by it (P1.4): the event loop's turn is now.
  int poll_thoroughly() {
    const int count = poll_btls() + poll_more(true);
    events_ += static_cast<unsigned>(count);
    return count;
  }
  /// A message has come, or a transfer has moved: look again at once. The event loop does not say
  /// what it has done.
  void note_event() noexcept {
    turns_without_event_ = 0;
    ++noted_;
  }
  /// What a turn of the event loop alone has done.
  struct EventTurn {
    bool moved = false;             ///< messages or pieces of them
    bool left_connections = false;  ///< to MPI threads, of processes that are not known
  };
  /// Turn the event loop alone, once, for the interrupt thread. @see poll_events_of
  [[nodiscard]] EventTurn turn_events(KnowsProcess knows, const void* context) noexcept;
  /// Turns in which MPI threads were to see to the event loop. Wraps. @thread  any
  [[nodiscard]] std::uint32_t event_turns() const noexcept {
    return event_turns_.load(std::memory_order_relaxed);
  }
  /// Of all turns; a caller that waits compares two readings. Wraps.
  [[nodiscard]] unsigned events() const noexcept { return events_; }

 private:
  int poll_btls() {
    int count = 0;
    for (unsigned i = 0; i < btl_count_; ++i) count += btls_[i]();
    return count;
  }
  int poll_more(bool events_now);

  // A system call each: while they bring nothing, other BTLs are polled so often in between.
  static constexpr unsigned quiet_turns_per_event_turn = 8;
  // A loop that has just brought something is turned in each turn for a while.
  static constexpr unsigned busy_turns = 64;
  static constexpr unsigned btls_max = 16;  // components; Open MPI has about ten

  std::array<mca_btl_base_component_progress_fn_t, btls_max> btls_{};
  unsigned btl_count_ = 0;
  bool more_ = false;  ///< event_driven_ or a pollable
  bool event_driven_ = false;
  unsigned turns_without_event_ = 0;
  unsigned noted_ = 0;                         ///< calls of note_event
  unsigned events_ = 0;                        ///< what turns have returned
  std::atomic<std::uint32_t> event_turns_{0};  ///< a hint; orders nothing
  Pollable pollable_ = nullptr;
};

}  // namespace overlap
