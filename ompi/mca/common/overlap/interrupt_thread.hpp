// The interrupt thread: progress while no MPI thread is inside MPI (P4.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/event_watch.hpp"
#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "ompi/mca/common/overlap/helper.hpp"
#include "ompi/mca/common/overlap/interruption.hpp"
#include "ompi/mca/common/overlap/neighbours.hpp"
#include "ompi/mca/common/overlap/progress_driver.hpp"
#include "ompi/mca/common/overlap/protocol/stays.hpp"

namespace overlap {

/// One thread per process that sleeps in the kernel on the sockets of BTLs that libevent drives
/// (tcp), on a bell that neighbours ring and on what an adapter reports, and progresses once under
/// the progress lock when something has come and no MPI thread is progressing.
///
/// It is made when a call first leaves MPI with a request that needs this process, and only where
/// it can serve one: over sockets, through shared memory (serve_node()), or by a BTL that wakes who
/// sleeps (serve_network()). It never calls
/// opal_progress, makes no connection and accepts those of processes that have an endpoint only,
/// and completes no request: what has ended waits in the completion queue for an MPI thread.
///
/// Ownership
///   all but what follows      progress lock
///   watch_, helper_  the thread; the watch's timers: anybody
///   node_'s doze     see Interruption
class InterruptThread {
 public:
  InterruptThread(ProgressDriver& driver, Endpoints& endpoints, NodeArea& node) noexcept
      : driver_(driver), endpoints_(endpoints), node_(node) {}
  ~InterruptThread() { stop(); }
  InterruptThread(const InterruptThread&) = delete;
  InterruptThread& operator=(const InterruptThread&) = delete;

  /// May there be one, by the parameter common_overlap_progress and by what this Open MPI is like?
  [[nodiscard]] static bool is_possible() noexcept;
  /// Messages go over a BTL of shared memory, too: serve them where the parameter
  /// common_overlap_progress says so. @thread  MPI thread, progress lock held
  void serve_node(const mca_btl_base_module_t& btl) noexcept;
  [[nodiscard]] bool serves_node() const noexcept { return serves_node_; }
  /// The same for a BTL that wakes who sleeps, if this one does; the first is served. It needs no
  /// core to spare: the adapter moves the data.
  /// @param capability  outlives the thread
  /// @returns  whether this one is served
  bool serve_network(const BtlCapability& capability) noexcept;
  /// Messages to others by this BTL may be slept over: where no thread of this process sees to that
  /// (another parameter, windows of other components), calls do before they leave MPI.
  void wake_others(const BtlCapability& capability) noexcept {
    waking_ = &capability;
    may_ring_.store(true, std::memory_order_relaxed);
  }
  [[nodiscard]] bool serves_network(const BtlCapability* capability) const noexcept {
    return capability != nullptr && capability == network_;
  }
  /// A request needs this process to get further, and no longer. @thread  progress lock held
  void add_demand() noexcept {
    fresh_ = true;
    if (demand_++ == 0 && (serves_btls() || driver_.turns_events())) watch_stay(true);
  }
  /// Demand that is there all the time has something to wait for: as if it had just come.
  void renew_demand() noexcept { fresh_ = true; }
  void drop_demand() noexcept {
    if (--demand_ == 0 && (serves_btls() || driver_.turns_events())) watch_stay(false);
  }
  /// Something waits for a turn of progress that this thread can take, or no longer: the calls that
  /// leave MPI ring.
  void add_left_work() noexcept { ++left_work_; }
  void drop_left_work() noexcept { --left_work_; }
  [[nodiscard]] node::Waits& waits() noexcept { return node_.waits(); }
  /// Is the caller this thread? What it ends, an MPI thread completes. @thread  progress lock held
  [[nodiscard]] bool inside() const noexcept { return endpoints_.in_interrupt_thread; }

  /// A call is about to leave MPI: must it ring after it has left the lock?
  /// @returns  the delay for ring(), or no_ring
  /// @thread  progress lock held
  [[nodiscard]] std::uint32_t must_ring() noexcept {
    if (waking_ != nullptr) [[unlikely]]
      wake_or_leave();
    if (!is_needed() || !can_progress()) [[likely]]
      return no_ring;
    return must_ring_slow();
  }
  /// A call has progressed and may leave MPI with part of a copy undone (MPI_Test), while something
  /// waits for the adapter or for a turn, or after a connection has been made: the same.
  [[nodiscard]] std::uint32_t must_ring_for_work() noexcept {
    if (waking_ != nullptr) [[unlikely]]
      wake_or_leave();
    const bool is_new = !driver_.stays() && driver_.take_new_events();
    if (!is_needed() || !can_progress()) [[likely]]
      return no_ring;
    if (!has_work() && left_work_ == 0 && !(is_new && misses_connections())) return no_ring;
    return must_ring_slow();
  }
  /// A call that has waited is about to leave MPI: the same, and ring. @thread  lock NOT held
  void ring_for_work() noexcept;
  static constexpr std::uint32_t no_ring = UINT32_MAX;
  /// A call that may leave MPI begins, and ends: its copies may be left to the thread.
  /// @thread  progress lock held
  void begin_leaving() noexcept {
    if (serves_node_) [[unlikely]]
      endpoints_.leave_copies_min_bytes = least_copy_bytes();
  }
  void end_leaving() noexcept {
    if (serves_node_) [[unlikely]]
      endpoints_.leave_copies_min_bytes = Endpoints::no_copy;
  }
  /// @thread  any; mostly without the progress lock, which whoever wakes wants
  void ring(std::uint32_t delay_ns) noexcept { watch_.ring(delay_ns); }
  /// End the thread; a later demand makes no new one. @thread  any but itself, lock NOT held
  void stop() noexcept;
  /// The same in exit(), which runs destructors of what the thread would write into; waits for a
  /// second at most. @thread  any
  void stop_in_exit() noexcept;

 private:
  friend class Interruption<InterruptThread>;
  enum class State : std::uint8_t { none, running, refused, stopped };

  [[nodiscard]] bool serves_btls() const noexcept { return serves_node_ || network_ != nullptr; }
  /// Does anything wait that this process must see to?
  [[nodiscard]] bool is_needed() const noexcept {
    return demand_ != 0 || left_work_ != 0 || network_waits();
  }
  [[nodiscard]] std::uint32_t must_ring_slow() noexcept;
  void wake_or_leave() noexcept;
  [[nodiscard]] bool start() noexcept;
  [[nodiscard]] int make_thread() noexcept;
  void join() noexcept;
  void ask_to_end() noexcept;
  void watch_stay(bool on) noexcept;
  void stays() noexcept;
  void note_futile_wake() noexcept;
  [[nodiscard]] std::uint64_t least_copy_bytes() const noexcept;
  /// May it turn the event loop now? What tcp brings is answered, or makes room, by other BTLs,
  /// too; and osc/rdma has processes added to any of them while it is asked about a window.
  [[nodiscard]] bool turns_events() const noexcept {
    return driver_.turns_events() && !ForeignWindows::any();
  }
  /// May it poll BTLs now?
  [[nodiscard]] bool polls() const noexcept { return serves_btls() && !ForeignWindows::any(); }
  /// Can a turn of it be of any use now?
  [[nodiscard]] bool can_progress() const noexcept { return turns_events() || polls(); }
  /// Is there a copy, or what waits for room, that it could see to?
  [[nodiscard]] bool has_work() const noexcept {
    return polls() && (endpoints_.has_thread_work() || network_waits());
  }
  /// Does the adapter's BTL keep something, perhaps of requests that count no more? Other
  /// components change that without our lock.
  [[nodiscard]] bool network_waits() const noexcept {
    return network_ != nullptr && !ForeignWindows::any() && network_->is_waiting();
  }
  /// What the network reports arrivals by, if it may poll now. @returns  -1: nothing
  [[nodiscard]] int network_descriptor() const noexcept {
    return network_ != nullptr && polls() ? network_->arrival_descriptor : -1;
  }

  // The host of Interruption.
  template <class T>
  using Atomic = std::atomic<T>;
  using Turn = Interruption<InterruptThread>::Turn;
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  [[nodiscard]] bool sleep(Sleep sleep) noexcept;
  [[nodiscard]] static std::uint64_t now_ns() noexcept;
  [[nodiscard]] std::atomic<Doze>& doze() noexcept {
    return node_.get() != nullptr ? node_.get()->doze : own_doze_;
  }
  [[nodiscard]] static bool try_lock() noexcept { return progress_lock.try_lock(); }
  static void unlock() noexcept { progress_lock.unlock(); }
  [[nodiscard]] std::uint32_t turns() const noexcept { return driver_.turns(); }
  [[nodiscard]] bool wanted() const noexcept;
  [[nodiscard]] Turn turn() noexcept;
  static void fence() noexcept { node::full_fence(); }  // R2, pairs with S2 (node/wake.hpp)
  [[nodiscard]] bool look_again(bool in_thread) noexcept;
  [[nodiscard]] bool is_stale() noexcept {
    return (turns_events() && is_watch_stale()) || has_work() || left_work_ != 0 ||
           network_descriptor() != watched_network_;
  }
  /// A call may have come to know a process whose connection was left to MPI threads.
  [[nodiscard]] bool is_watch_stale() noexcept {
    return left_connections_ || watch_.has_other_count() ||
           (turned_elsewhere() && watch_.has_other_descriptors());
  }
  /// Not of sockets that have become full, which is no news in an exchange.
  [[nodiscard]] bool misses_connections() noexcept {
    return turns_events() && (left_connections_ || watch_.has_other_descriptors());
  }
  /// Have MPI threads turned the event loop since this thread has taken in its descriptors?
  [[nodiscard]] bool turned_elsewhere() const noexcept { return turns() != synced_turns_; }

  ProgressDriver& driver_;
  Endpoints& endpoints_;
  NodeArea& node_;
  EventWatch watch_;
  Helper helper_;
  Interruption<InterruptThread> interruption_{*this};
  pthread_t thread_{};
  /// Changed under the progress lock, but by exit(). Orders nothing: join() does.
  std::atomic<State> state_{State::none};
  pid_t owner_ = 0;  ///< of the thread: a process that has been forked has none
  bool serves_node_ = false;
  bool node_choice_reported_ = false;
  const BtlCapability* network_ = nullptr;  ///< of the BTL that serve_network() has taken
  const BtlCapability* waking_ = nullptr;   ///< of wake_others()
  /// What the thread sleeps on besides; it writes it under the lock, and reads it without.
  int watched_network_ = -1;
  Stays stays_;
  bool woken_by_sender_ = false;   ///< and has not taken a turn since; the thread's
  bool left_connections_ = false;  ///< in the thread's last turn
  bool fresh_ = false;             ///< demand has been added, and no call has left MPI since
  std::uint32_t demand_ = 0;
  std::uint32_t left_work_ = 0;
  std::uint32_t synced_turns_ = 0;           ///< turns() when the watch was synced
  std::atomic<Doze> own_doze_{Doze::awake};  ///< without a node area
  /// Is there anybody to ring, serves_btls() or waking_? A hint for calls without the lock; set
  /// under it, orders nothing.
  std::atomic<bool> may_ring_{false};
  std::atomic<bool> stopping_{false};  ///< S1 stop() sets it (release) -> S2 stopping() (acquire)
};

/// Entry of a call that may leave MPI with its request outstanding.
class LeavingEntry {
 public:
  explicit LeavingEntry(InterruptThread& interrupts) noexcept : interrupts_(interrupts) {
    progress_lock.lock();
    interrupts_.begin_leaving();
  }
  ~LeavingEntry() {
    interrupts_.end_leaving();
    const std::uint32_t delay_ns = interrupts_.must_ring();
    progress_lock.unlock();
    if (delay_ns != InterruptThread::no_ring) [[unlikely]]
      interrupts_.ring(delay_ns);
  }
  LeavingEntry(const LeavingEntry&) = delete;
  LeavingEntry& operator=(const LeavingEntry&) = delete;

 private:
  InterruptThread& interrupts_;
};

/// The demand of one request.
///
/// @thread  progress lock held
class Demand {
 public:
  void add(InterruptThread& interrupts) noexcept {
    if (!std::exchange(counted_, true)) interrupts.add_demand();
  }
  /// The same, with the message that it waits for (P4.4).
  void add(InterruptThread& interrupts, const node::Envelope& wait) noexcept {
    if (counted_) return;
    place_ = interrupts.waits().add(wait);
    listed_ = true;
    add(interrupts);
  }
  void drop(InterruptThread& interrupts) noexcept {
    if (!std::exchange(counted_, false)) return;
    interrupts.drop_demand();
    if (std::exchange(listed_, false)) interrupts.waits().remove(place_);
  }

 private:
  bool counted_ = false;
  bool listed_ = false;
  std::uint8_t place_ = 0;  ///< if listed_
};

/// Something that waits for a turn of the interrupt thread, or not now.
///
/// @thread  progress lock held
class LeftWork {
 public:
  void set(InterruptThread& interrupts, bool is_there) noexcept {
    if (std::exchange(counted_, is_there) == is_there) return;
    is_there ? interrupts.add_left_work() : interrupts.drop_left_work();
  }

 private:
  bool counted_ = false;
};

}  // namespace overlap
