// Who is polled, how often and how much at a time: the one place from which this process's BTLs and
// everything that stands on them make progress.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <array>
#include <cstdint>

#include "ompi/mca/common/overlap/protocol/event_pace.hpp"

namespace overlap {

/// Polls BTLs under the progress lock instead of opal_progress, which knows nothing of the lock.
///
/// What it takes over from Open MPI (the progress functions of BTLs; the event loop once a BTL in
/// use needs it) it gives back with give_back().
///
/// @thread  progress lock held for every call
class ProgressDriver {
 public:
  /// More work for each turn, for instance endpoints whose work waits for room. Bounded per call;
  /// each returns the events that it has seen.
  struct Pollable {
    int (*poll)() noexcept = nullptr;
    /// The part that an interrupt thread may do; nullptr: none.
    int (*poll_in_thread)() noexcept = nullptr;
  };

  /// Take over the progress functions of BTLs that the BML has registered since the last call.
  void adopt_btls() noexcept;
  /// A BTL that messages of this process go through is driven by libevent (tcp): turn the loop.
  void need_events() noexcept;
  /// Several threads will call MPI: opal_progress, which takes no lock of ours, must turn the loop
  /// in none of them when need_events() is called in another one. Whoever calls opal_progress
  /// calls poll() first. Before that an EventPace says when it is turned.
  void own_events() noexcept;
  [[nodiscard]] bool turns_events() const noexcept { return event_driven_; }
  /// Has the loop come to watch more or fewer since take_new_events(): has a connection been made?
  /// @thread  any: a hint
  [[nodiscard]] bool has_new_events() const noexcept {
    return new_events_.load(std::memory_order_relaxed);
  }
  /// The same, once.
  [[nodiscard]] bool take_new_events() noexcept {
    if (!has_new_events()) [[likely]]
      return false;
    new_events_.store(false, std::memory_order_relaxed);
    return true;
  }
  /// Who watches them has left some of them out.
  void note_new_events() noexcept { new_events_.store(true, std::memory_order_relaxed); }
  /// A call waits, or no longer: it will ask for what is new when it ends. A hint: with several
  /// threads it is the last one's. @thread  any
  void set_stay(bool stays) noexcept { stays_.store(stays, std::memory_order_relaxed); }
  [[nodiscard]] bool stays() const noexcept { return stays_.load(std::memory_order_relaxed); }
  /// @param needed  poll it in each turn, or no longer; at most pollables_max of them
  void set_pollable(const Pollable& pollable, bool needed) noexcept;
  static constexpr unsigned pollables_max = 4;
  /// Count turns, and call on_stay() when an MPI thread has taken stay_turns of them in a row; or
  /// no longer. @param on_stay  outlives the driver; nullptr: no longer
  /// @param shared  shows the helper the turns; nullptr: nobody looks
  void set_on_stay(void (*on_stay)(void*), void* context,
                   std::atomic<std::uint32_t>* shared = nullptr) noexcept {
    on_stay_ = on_stay;
    shared_turns_ = shared;
    stay_context_ = context;
    stay_turns_ = 0;
    set_more();
  }
  /// A call leaves MPI: the turns so far were not one long stay.
  void note_leaving() noexcept { stay_turns_ = 0; }
  /// Let opal_progress do again what it did before. After the last poll.
  void give_back() noexcept;

  /// One turn: every BTL once, the event loop when its turn has come, the pollable.
  /// @returns  events that BTLs have reported, and those noted during the turn
  int poll() {
    int count = poll_btls();
    if (more_) [[unlikely]]
      count += poll_more(false);
    add_events(count);
    return count;
  }
  /// The same for a caller that looks once and decides by it (P1.4): the event loop's turn is now,
  /// where messages need it.
  int poll_thoroughly() {
    const int count = poll_btls() + poll_more(true);
    add_events(count);
    return count;
  }
  /// A message has come, or a transfer has moved: look again at once. The event loop does not say
  /// what it has done.
  void note_event() noexcept {
    turns_without_event_ = 0;
    ++noted_;
  }
  /// What a turn of the interrupt thread has done.
  struct ThreadTurn {
    bool moved = false;             ///< messages or pieces of them
    bool left_connections = false;  ///< to MPI threads, of processes that are not known
  };
  /// The interrupt thread may poll this BTL, too. Not more than thread_btls_max of them.
  void let_thread_poll(mca_btl_base_component_progress_fn_t btl) noexcept {
    thread_btls_[thread_btl_count_++] = btl;
  }
  static constexpr unsigned thread_btls_max = 2;  // shared memory and a network
  /// What it may call now.
  struct ThreadReach {
    bool btls = false;    ///< those of let_thread_poll()
    bool events = false;  ///< the event loop
  };
  /// One turn of the interrupt thread: the event loop, if a BTL in use needs it, BTLs, and what
  /// waits for room; nothing if it may call neither. @see poll_events_of
  [[nodiscard]] ThreadTurn turn_in_thread(ThreadReach reach, KnowsProcess knows,
                                          const void* context) noexcept;
  /// Poll those BTLs alone. @returns  whether they have done anything: there may be more
  [[nodiscard]] bool look_at_thread_btls();
  /// Turns of MPI threads while there is an event loop to see to, or a stay to notice. Wraps.
  /// @thread  any
  [[nodiscard]] std::uint32_t turns() const noexcept {
    return turns_.load(std::memory_order_relaxed);
  }
  /// Of all turns; a caller that waits compares two readings. Wraps. @thread  any
  [[nodiscard]] unsigned events() const noexcept { return events_.load(std::memory_order_relaxed); }
  /// Of the threads that wait, the one that polls without pause; nullptr: none. A hint, orders
  /// nothing. @thread  any
  [[nodiscard]] std::atomic<const void*>& first_waiting() noexcept { return first_waiting_; }

 private:
  /// Written by one thread at a time.
  void add_events(int count) noexcept {
    events_.store(events() + static_cast<unsigned>(count), std::memory_order_relaxed);
  }
  int poll_btls() {
    int count = 0;
    for (unsigned i = 0; i < btl_count_; ++i) count += btls_[i]();
    return count;
  }
  int poll_thread_btls();
  int poll_more(bool events_now);
  void turn_events() noexcept;
  [[nodiscard]] bool is_event_turn(bool events_now) noexcept;
  int poll_pollables(int (*Pollable::*poll)() noexcept) noexcept;
  void set_more() noexcept {
    more_ = event_driven_ || owns_events_ || pollable_count_ != 0 || on_stay_ != nullptr;
  }

  // A system call each: while they bring nothing, other BTLs are polled so often in between.
  static constexpr unsigned quiet_turns_per_event_turn = 8;
  // A loop that has just brought something is turned in each turn for a while.
  static constexpr unsigned busy_turns = 64;
  static constexpr unsigned btls_max = 16;  // components; Open MPI has about ten
  // Some microseconds: who has polled so often is in MPI_Wait, or tests again and again.
  static constexpr unsigned stay_turns_max = 16;

  std::array<mca_btl_base_component_progress_fn_t, btls_max> btls_{};
  unsigned btl_count_ = 0;
  std::array<mca_btl_base_component_progress_fn_t, thread_btls_max> thread_btls_{};
  unsigned thread_btl_count_ = 0;
  bool more_ = false;  ///< event_driven_, owns_events_, or a pollable, or on_stay_
  bool event_driven_ = false;
  bool owns_events_ = false;
  EventPace event_pace_;                 ///< while nothing is event_driven_
  std::size_t event_count_ = 0;          ///< of the loop after its last turn by an MPI thread
  std::atomic<bool> new_events_{false};  ///< changed under the lock; orders nothing
  std::atomic<bool> stays_{false};       ///< orders nothing
  unsigned turns_without_event_ = 0;
  unsigned noted_ = 0;                               ///< calls of note_event
  std::atomic<unsigned> events_{0};                  ///< what turns have returned
  std::atomic<const void*> first_waiting_{nullptr};  ///< first_waiting()
  std::atomic<std::uint32_t> turns_{0};              ///< a hint; orders nothing
  std::array<Pollable, pollables_max> pollables_{};  ///< [pollable_count_]
  unsigned pollable_count_ = 0;
  void (*on_stay_)(void*) = nullptr;
  void* stay_context_ = nullptr;
  std::atomic<std::uint32_t>* shared_turns_ = nullptr;
  unsigned stay_turns_ = 0;
};

}  // namespace overlap
