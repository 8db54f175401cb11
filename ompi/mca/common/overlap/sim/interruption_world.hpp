// One process with an interrupt thread, for the explorer: what arrives, calls, windows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <optional>

#include "ompi/mca/common/overlap/interruption.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"

namespace overlap::sim {

using node::claim_wake;
using tso::Machine;
using tso::StepKind;
using Cell = tso::Atomic<std::uint32_t>;
inline constexpr auto fenced = std::memory_order_seq_cst;

/// What is planted, for the explorer to find.
enum class Fault : std::uint8_t {
  none,
  never_rings,       ///< calls do not ring
  ring_is_not_kept,  ///< a ring that meets no sleeper is lost
  never_stale,       ///< what a call leaves for a socket that has room is not noticed
  one_turn,          ///< a turn that has moved something is not repeated
  naps_for_ever,     ///< a nap ends only when rung
  arms_blindly,      ///< the thread does not look again when it has armed itself
  posts_blindly,     ///< a call that posts a receive beside an armed thread does not look
  no_sender_fence,   ///< decide_wake() has no fence
  no_poster_fence,   ///< the call that posts has none
  arms_too_late,     ///< the thread polls before it arms the adapter
  begins_unlocked,   ///< a window begins without the progress lock
  ends_quietly,      ///< the call with which a window has ended does not ring
  forgets_fresh      ///< beside a window a call that need not ring forgets what is new
};

/// How messages come.
enum class Way : std::uint8_t {
  socket,
  shared,  ///< a neighbour writes them, and rings
  network  ///< an adapter writes them, and reports the first one after it was armed
};

/// In the place of node::Area, for decide_wake().
struct ModelArea {
  ModelArea(std::uint32_t outstanding, bool has_fence) : listed(outstanding), fences(has_fence) {}
  /// An exchange empties the store buffer.
  void fence() const {
    if (fences) barrier.modify(0, 0);
  }
  tso::Atomic<Doze> doze{Doze::awake};
  tso::Atomic<std::uint32_t> watched_until_ms{0};
  Cell listed;  ///< bits of receives
  mutable Cell barrier{0};
  bool fences;
};
inline bool is_waited_for(const ModelArea& area, const node::Envelope& arrival) {
  return (area.listed.load(std::memory_order_acquire) & static_cast<unsigned>(arrival.tag)) != 0;
}

/// One process: a socket, the progress lock, what it waits for. One MPI thread, and one window of
/// another component at a time.
///
/// Ownership
///   kernel_    the bits below; the kernel's own words for the bell, the socket and the adapter
///   sends_     progress lock; bits of sends whose data is for a socket that has room, and stale
///   receive_   progress lock; bits of receives, or of sends that wait for an answer, outstanding
///   fifo_      shared memory: bits of messages that neighbours or the adapter have written, unseen
///   adapter_   1: armed
///   unexpected_  progress lock; bits of messages that have been seen before their receive
///   windows_   progress lock; 1: another component has a window, and the thread keeps out of BTLs
template <Fault fault>
class World {
 public:
  template <class T>
  using Atomic = tso::Atomic<T>;
  using Interruption = overlap::Interruption<World>;
  static constexpr std::uint32_t first = 1, second = 2, stale = 4;

  /// @param outstanding  bits of receives, from the start
  World(std::uint32_t outstanding, Way messages)
      : way(messages), area(outstanding, fault != Fault::no_sender_fence), receive_(outstanding) {}

  // --- a neighbour ---------------------------------------------------------------------------

  /// A message through shared memory. @param which  the receive that it is for
  void neighbour_sends(std::uint32_t which) {
    fifo_.store(which, std::memory_order_relaxed);
    if (wants_wake(which) && claim_wake(area)) change(belled);
  }
  /// A neighbour claims the wake for a message of the first receive, and is stopped there.
  void neighbour_stops() {
    if (wants_wake(first)) static_cast<void>(claim_wake(area));
  }

  // --- an adapter ---------------------------------------------------------------------------

  void adapter_writes(std::uint32_t which) {
    fifo_.modify(0, which);
    if (adapter_.exchange(0, fenced) != 0) change(reported);
  }

  // --- the kernel ---------------------------------------------------------------------------

  /// A message comes in.
  void arrive() { change(arrived); }
  void ring() {
    if (fault != Fault::never_rings) change(fault == Fault::ring_is_not_kept ? 0 : rung);
  }

  // --- MPI threads --------------------------------------------------------------------------

  void receive(std::uint32_t which = first) {
    leave([this, which] {
      fresh_ = true;
      const std::uint32_t before = receive_.modify(0, which);
      if ((unexpected_.modify(which, 0) & which) != 0)
        end_receives(which);
      else
        area.listed.store(before | which, std::memory_order_relaxed);
    });
  }
  /// @param which  first or second
  void send(std::uint32_t which) {
    leave([this, which] {
      fresh_ = true;
      sends_.modify(0, which | stale);
    });
  }
  /// A window of another component begins, whose calls are inside BTLs without the lock.
  void begin_window() {
    if (fault != Fault::begins_unlocked) lock();
    windows_.store(1, fenced);
    if (fault != Fault::begins_unlocked) unlock();
    is_in_window_ = true;
  }
  void call_window() {
    Machine::current->enter();
    Machine::current->step({});
    Machine::current->leave();
  }
  void end_window() {
    is_in_window_ = false;
    leave([this] { windows_.store(0, fenced); }, fault != Fault::ends_quietly);
  }
  /// Progress once inside MPI (MPI_Test).
  void progress() {
    lock();
    turns_.store(1, fenced);
    static_cast<void>(serve());
    static_cast<void>(interruption->put_off(0, InterruptLoop::nap_max_ns));
    unlock();
  }
  /// The application looks at its buffers, outside MPI.
  void await_receive() { Machine::current->step({StepKind::await_zero, receive_.cell()}); }
  void await_second() { Machine::current->step({StepKind::await_zero, second_open_.cell()}); }
  void await_sends() { Machine::current->step({StepKind::await_zero, sends_.cell()}); }
  void stop() { change(rung | stopped); }

  // --- the host of Interruption -------------------------------------------------------------

  bool stopping() const { return seen_stopped_; }
  /// Timers go off at any time.
  static std::uint64_t now_ns() { return 0; }
  bool sleep(Sleep sleep) {
    if (sleep.until == Sleep::Until::time && fault != Fault::naps_for_ever) {
      // Whoever is inside leaves again: the looks in between would only be refused.
      Machine::current->step({StepKind::await_zero, held_.cell()});
      return is_rung(kernel_.modify(rung, 0));
    }
    for (;;) {
      const std::uint32_t seen = kernel_.modify(rung, 0);
      if (is_rung(seen)) return true;
      if (sleep.until == Sleep::Until::arrival) {
        if ((kernel_.modify(belled, 0) & belled) != 0) return false;
        if ((seen & (arrived | reported)) != 0) return false;
      }
      Machine::current->step({StepKind::wait, kernel_.cell(), seen});
      if (fault == Fault::ring_is_not_kept) return true;
    }
  }
  bool try_lock() { return held_.exchange(1, fenced) == 0; }
  void unlock() { held_.store(0, fenced); }
  std::uint32_t turns() { return tests ? turns_.load(std::memory_order_relaxed) : 0; }
  bool wanted() { return has_demand() && (!makes_windows || windows_.load(fenced) == 0); }
  typename Interruption::Turn turn() {
    Machine::current->enter();
    const bool moved = serve();
    Machine::current->leave();
    const bool readable = way == Way::socket && (kernel_.load(fenced) & arrived) != 0;
    return {.moved = fault != Fault::one_turn && moved, .readable = readable};
  }
  void fence() {
    if (fault != Fault::no_poster_fence) area.barrier.modify(0, 0);
  }
  bool look_again(bool in_thread) {
    if (fault == (in_thread ? Fault::arms_blindly : Fault::posts_blindly)) return false;
    if (in_thread) Machine::current->enter();
    const bool arms = way == Way::network && in_thread;
    if (arms && fault != Fault::arms_too_late) arm();
    const bool moved = way != Way::socket && serve_fifo();
    if (arms && fault == Fault::arms_too_late) arm();
    if (in_thread) Machine::current->leave();
    return moved;
  }
  Atomic<Doze>& doze() { return area.doze; }
  bool is_stale() {
    return way == Way::socket && fault != Fault::never_stale && (sends_.load(fenced) & stale) != 0;
  }

  bool answers = false;        ///< what arrives is answered by data, as a sender answers a receiver
  bool tests = false;          ///< the application calls progress()
  bool makes_windows = false;  ///< the application calls begin_window() and end_window()
  const Way way;
  ModelArea area;
  std::optional<Interruption> interruption{*this};

 private:
  void lock() {
    while (!try_lock()) Machine::current->step({StepKind::await_zero, held_.cell()});
  }
  template <class Start>
  void leave(Start start, bool may_ring = true) {
    lock();
    start();
    const bool rings = may_ring && must_ring();
    if (rings) interruption->note_ring(interruption->ring_delay_ns());
    unlock();
    if (rings) ring();
  }
  bool has_demand() {
    return receive_.load(fenced) != 0 || (way == Way::socket && sends_.load(fenced) != 0);
  }
  bool must_ring() {
    const bool fresh = fresh_;
    if (fault == Fault::forgets_fresh) fresh_ = false;
    if (is_in_window_ || !has_demand()) return false;
    fresh_ = false;
    return interruption->must_ring(fresh);
  }
  bool wants_wake(std::uint32_t which) {
    using namespace overlap::node;
    const Envelope message{.tag = static_cast<std::int32_t>(which)};
    return decide_wake(area, message, 0) == WakeDecision::ring;
  }
  /// @returns  whether a message was there
  bool serve_fifo() {
    const std::uint32_t came = fifo_.load(std::memory_order_acquire);
    if (came == 0) return false;
    fifo_.modify(came, 0);
    const std::uint32_t waited = receive_.load(fenced);
    end_receives(came & waited);
    if ((came & ~waited) != 0) unexpected_.modify(0, came & ~waited);
    return true;
  }
  void arm() {
    kernel_.modify(reported, 0);
    adapter_.store(1, fenced);
  }
  void end_receives(std::uint32_t which) {
    receive_.modify(which, 0);
    area.listed.modify(which, 0);
    if ((which & second) != 0) second_open_.store(0, fenced);
  }
  void change(std::uint32_t bits) {
    kernel_.modify(0, bits);
    Machine::current->step({StepKind::wake_all, kernel_.cell()});
  }
  bool is_rung(std::uint32_t seen) {
    seen_stopped_ = (seen & stopped) != 0;
    return (seen & rung) != 0;
  }
  /// A turn of the event loop: what is to be sent at its beginning goes, then what has arrived is
  /// read; it ends the receive, or is answered by data that a later turn sends.
  bool serve() {
    if (way != Way::socket) return serve_fifo();
    const std::uint32_t sent = sends_.modify(first | second | stale, 0);
    const bool came = (kernel_.modify(arrived, 0) & arrived) != 0;
    if (came) receive_.store(0, fenced);
    if (came && answers) sends_.modify(0, first);
    return (sent & (first | second)) != 0 || came;
  }

  static constexpr std::uint32_t rung = 1, arrived = 2, stopped = 4, belled = 8, reported = 16;
  Cell kernel_{0};
  Cell held_{0};  ///< the progress lock
  Cell sends_{0};
  Cell receive_;
  Cell fifo_{0};
  Cell adapter_{0};
  Cell unexpected_{0};
  Cell second_open_{1};  ///< until the second receive has ended
  Cell turns_{0};
  Cell windows_{0};            ///< of other components
  bool is_in_window_ = false;  ///< the application's
  bool fresh_ = false;         ///< the application's
  bool seen_stopped_ = false;  ///< the thread's own
};

}  // namespace overlap::sim
