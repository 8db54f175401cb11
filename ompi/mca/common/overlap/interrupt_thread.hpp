// The interrupt thread: progress while no MPI thread is inside MPI (P4.3).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include "ompi/mca/common/overlap/endpoint.hpp"
#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/event_watch.hpp"
#include "ompi/mca/common/overlap/progress_driver.hpp"
#include "ompi/mca/common/overlap/interruption.hpp"

namespace overlap {

/// One thread per process that sleeps in the kernel on the sockets of BTLs that libevent drives
/// (tcp), and turns the event loop once under the progress lock when one of them can be served and
/// no MPI thread is progressing.
///
/// It is made when a call first leaves MPI with a request that needs this process, and only where
/// such a BTL is in use. It never calls opal_progress, makes no connection and accepts those of
/// processes that have an endpoint only, and completes no request: what has ended waits in the
/// completion queue for an MPI thread.
///
/// Ownership
///   all but watch_   progress lock
///   watch_           the thread; its bell: anybody
class InterruptThread {
 public:
  InterruptThread(ProgressDriver& driver, const Endpoints& endpoints) noexcept
      : driver_(driver), endpoints_(endpoints) {}
  ~InterruptThread() { stop(); }
  InterruptThread(const InterruptThread&) = delete;
  InterruptThread& operator=(const InterruptThread&) = delete;

  /// May there be one, by the parameter common_overlap_progress and by what this Open MPI is like?
  [[nodiscard]] static bool is_possible() noexcept;
  /// A request needs this process to get further, and no longer. @thread  progress lock held
  void add_demand() noexcept {
    ++demand_;
    fresh_ = true;
  }
  void drop_demand() noexcept { --demand_; }
  /// Is the caller this thread? What it ends, an MPI thread completes. @thread  progress lock held
  [[nodiscard]] bool inside() const noexcept { return inside_; }

  /// A call is about to leave MPI: must it ring after it has left the lock?
  /// @thread  progress lock held
  [[nodiscard]] bool must_ring() noexcept {
    return demand_ != 0 && driver_.turns_events() && must_ring_slow();
  }
  /// @thread  progress lock NOT held
  void ring() noexcept { watch_.ring(interruption_.ring_delay_ns()); }
  /// End the thread; a later demand makes no new one. @thread  MPI thread, lock NOT held
  void stop() noexcept;

 private:
  friend class Interruption<InterruptThread>;
  enum class State : std::uint8_t { none, running, refused, stopped };

  [[nodiscard]] bool must_ring_slow() noexcept;
  [[nodiscard]] bool start() noexcept;

  // The host of Interruption.
  template <class T>
  using Atomic = std::atomic<T>;
  using Turn = Interruption<InterruptThread>::Turn;
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_acquire); }
  [[nodiscard]] bool sleep(Sleep sleep) noexcept { return watch_.sleep(sleep); }
  [[nodiscard]] static bool try_lock() noexcept { return progress_lock.try_lock(); }
  static void unlock() noexcept { progress_lock.unlock(); }
  [[nodiscard]] std::uint32_t turns() const noexcept { return driver_.event_turns(); }
  [[nodiscard]] bool wanted() const noexcept;
  [[nodiscard]] Turn turn() noexcept;
  /// A call may have come to know a process whose connection was left to MPI threads.
  [[nodiscard]] bool is_stale() noexcept {
    return left_connections_ || watch_.has_other_count() ||
           (turned_elsewhere() && watch_.has_other_descriptors());
  }
  /// Have MPI threads turned the event loop since this thread has taken in its descriptors?
  [[nodiscard]] bool turned_elsewhere() const noexcept { return turns() != synced_turns_; }

  ProgressDriver& driver_;
  const Endpoints& endpoints_;
  EventWatch watch_;
  Interruption<InterruptThread> interruption_{*this};
  pthread_t thread_{};
  State state_ = State::none;
  bool inside_ = false;
  bool left_connections_ = false;  ///< in the thread's last turn
  bool fresh_ = false;             ///< demand has been added, and no call has left MPI since
  std::uint32_t demand_ = 0;
  std::uint32_t synced_turns_ = 0;     ///< turns() when the watch was synced
  std::atomic<bool> stopping_{false};  ///< S1 stop() sets it (release) -> S2 stopping() (acquire)
};

/// Entry of a call that may leave MPI with its request outstanding.
class LeavingEntry {
 public:
  explicit LeavingEntry(InterruptThread& interrupts) noexcept : interrupts_(interrupts) {
    progress_lock.lock();
  }
  ~LeavingEntry() {
    const bool rings = interrupts_.must_ring();
    progress_lock.unlock();
    if (rings) [[unlikely]]
      interrupts_.ring();
  }
  LeavingEntry(const LeavingEntry&) = delete;
  LeavingEntry& operator=(const LeavingEntry&) = delete;

 private:
  InterruptThread& interrupts_;
};

/// The demand of one request.
class Demand {
 public:
  /// @thread  progress lock held
  void add(InterruptThread& interrupts) noexcept {
    if (!std::exchange(counted_, true)) interrupts.add_demand();
  }
  void drop(InterruptThread& interrupts) noexcept {
    if (std::exchange(counted_, false)) interrupts.drop_demand();
  }

 private:
  bool counted_ = false;
};

}  // namespace overlap
