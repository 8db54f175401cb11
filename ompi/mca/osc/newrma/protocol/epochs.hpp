// Epochs of one window at one rank: which are open, which wait for others, and what they ask of
// other ranks.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"

#include "epoch.hpp"
#include "process_locks.hpp"
#include "ticket_lock.hpp"

namespace overlap::newrma {

/// What the epochs of a window ask of their surroundings. send() may bring messages in (it calls
/// Epochs::on_notice() then), start() may call Epochs::operation_done(); the others call nothing.
class Host {
 public:
  /// Behind everything that has gone to that rank before. Not to this rank itself.
  virtual void send(Rank to, const NoticeMessage& notice) = 0;
  /// Its target is ready: carry it out. Epochs::operation_done() follows, now or later.
  virtual void start(Operation& operation) = 0;
  virtual void happened(Event& event) = 0;
  /// Memory has run out in the middle of several changes: nothing can go on. Does not return.
  [[noreturn]] virtual void end_without_memory() = 0;
  /// The lock of a rank, if this process maps it; its own always.
  [[nodiscard]] virtual WindowLock* lock_of(Rank rank) = 0;
  /// This process waits with a ticket of a lock that it maps; and it has let the next tickets in,
  /// whose processes may sleep.
  virtual void took_ticket(Rank, WindowLock::Ticket) {}
  virtual void passed_turn(Rank) {}
  /// The same of guests, whom nobody knows.
  virtual void let_guests_in(Rank) {}

 protected:
  ~Host() = default;
};

/// The epoch machine of one window at one rank (P5.1 to P5.3).
///
/// Opening and closing calls never wait. An epoch that is opened behind a closed one that has not
/// ended is recorded with its operations and becomes active when the earlier one ends, in program
/// order (Reorder has the exceptions). One that overlaps an open epoch (start inside post ... wait)
/// is active at once. Operations start when their epoch is active and their target ready: it
/// has posted, granted the lock, or entered the fence. What ends is told through events.
///
/// Calls that MPI does not allow here return false and change nothing (MPI_ERR_RMA_SYNC).
///
/// @thread  one at a time
class Epochs {
 public:
  /// @param locks  of all windows of the process
  /// @param count  ranks of the window
  Epochs(Host& host, ProcessLocks& locks, Rank self, Rank count, Reorder reorder);
  Epochs(const Epochs&) = delete;
  Epochs& operator=(const Epochs&) = delete;
  ~Epochs();

  // Opening and closing; `ended` happens when the epoch has, nullptr: nobody asks.

  /// End the fence epoch, if there is one, with a barrier of all ranks; begin another one.
  /// @param no_precede  MPI_MODE_NOPRECEDE, the same at all ranks
  [[nodiscard]] bool fence(Event* ended, bool begin_next, bool no_precede = false);
  /// Would a fence end an epoch? Not the first one.
  [[nodiscard]] bool fence_ends_epoch(bool no_precede) const noexcept {
    return is_behind_fence_ && !no_precede;
  }
  [[nodiscard]] bool start(std::span<const Rank> group);
  [[nodiscard]] bool complete(Event* ended);
  /// Of the access epoch that complete() would close; empty: there is none
  [[nodiscard]] std::span<const Rank> started_group() const noexcept {
    return access_ != nullptr ? std::span<const Rank>(access_->group) : std::span<const Rank>();
  }
  [[nodiscard]] bool post(std::span<const Rank> group);
  [[nodiscard]] bool wait(Event* ended);
  /// @param done  has the exposure epoch ended? It is closed then, and open as before otherwise
  [[nodiscard]] bool test(bool& done);
  /// @param granted  happens when it is; nullptr: nobody asks
  /// @param returns_early  MPI lets the call wait, and it does not
  /// @param caller  whose locks are granted in the order in which it asks for them
  [[nodiscard]] bool lock(LockType type, Rank target, bool no_check, Event* granted,
                          bool returns_early = false, Caller caller = nullptr);
  [[nodiscard]] bool unlock(Rank target, Event* ended);
  /// The lock of a rank is asked for with the first operation to it, those of `now` at once: their
  /// memory is mapped, and the program may use it without a call. `granted` happens when all of
  /// `now` are.
  /// @param waits  the program does not go on before: they stand in queues, one behind the other.
  ///               Others are guests, all at once
  [[nodiscard]] bool lock_all(bool no_check, std::span<const Rank> now, Event* granted,
                              bool waits = true);
  [[nodiscard]] bool unlock_all(Event* ended);

  // The same of locks that are free while there is no other epoch, at once. They need no epoch
  // until more is asked of them than to be left.

  /// Of so many at a time, for which memory is there from now on.
  void expect_locks(std::size_t count) { entered_.targets.reserve(count); }
  /// @returns  false: nothing has been done, lock() is to be called
  [[nodiscard]] bool try_lock(LockType type, Rank target);
  /// @param now  ascending. @returns  false: lock_all() is to be called
  [[nodiscard]] bool try_lock_all(std::span<const Rank> now);
  /// Everything that has been issued under it has been carried out in its call.
  /// @returns  false: it has not been entered so; nothing has been done
  [[nodiscard]] bool try_unlock(Rank target);
  [[nodiscard]] bool try_unlock_all();
  /// Has the lock of that rank been entered so, and not got an epoch?
  [[nodiscard]] bool has_entered(Rank target) const noexcept {
    const auto number = [](Rank rank) { return static_cast<std::uint32_t>(rank); };
    if (number(target) - number(entered_.first) < entered_.neighbours) return true;
    return entered_.held && entered_.neighbours == 0 &&
           std::ranges::binary_search(entered_.targets, target);
  }

  /// What was issued before, and no more, is at its target, or (`local`) has left its buffers.
  [[nodiscard]] bool flush(Rank target, bool local, Event& done);
  [[nodiscard]] bool flush_all(bool local, Event& done);
  /// Would a flush of that rank, the one last accessed under locks, happen at once and change
  /// nothing?
  [[nodiscard]] bool is_flushed(Rank target) const noexcept {
    if (has_entered(target)) return true;
    const Access* const access = last_access_;
    return access != nullptr && access->target == target && is_passive(access->epoch) &&
           is_clear(*access) && !access->asked_ahead;
  }

  /// Accesses of the open epoch to that rank. @returns  nullptr: there is none
  [[nodiscard]] Access* access_to(Rank target) {
    Access* const last = last_access_to(target);
    return last != nullptr ? last : last_access_ = find_access(target);
  }
  /// The same where it was asked for last. @returns  nullptr: ask access_to()
  [[nodiscard]] Access* last_access_to(Rank target) const noexcept {
    return last_access_ != nullptr && last_access_->target == target ? last_access_ : nullptr;
  }
  /// Would an operation start at once?
  [[nodiscard]] static bool is_open(const Access& access) noexcept {
    return access.state == Access::State::open;
  }
  /// Is everything that was issued before known to be done at the target?
  [[nodiscard]] static bool is_clear(const Access& access) noexcept {
    return access.first == nullptr && access.written_age <= access.seen_age;
  }
  /// The same of what was issued before an operation that starts.
  [[nodiscard]] static bool is_first(const Operation& operation) noexcept {
    return operation.previous == nullptr &&
           operation.access->written_age <= operation.access->seen_age;
  }
  /// Record it; started as soon as the target is ready, possibly before this returns.
  void add(Operation& operation, Access& access);
  /// One that writes has gone to the target of an open access already, its buffers free.
  void add_sent_write(Access& access) noexcept {
    access.written_age = ++age_;
    note_asked_in_vain(access);
    note_unasked(access);
  }
  /// A started operation that does not say so writes nevertheless: it goes another way.
  static void set_written(const Operation& operation) noexcept {
    operation.access->written_age = std::max(operation.access->written_age, operation.age);
  }
  /// Its buffers are free, its results there, and its messages before all later ones.
  void operation_done(Operation& operation);
  void on_notice(Rank from, const NoticeMessage& notice);
  /// Is there something to ask_ahead() for?
  [[nodiscard]] bool has_unasked() const noexcept { return unasked_ != 0; }
  /// The program computes: ask targets of open epochs now whether they have everything, so that the
  /// call that closes the epoch need not wait for the answer.
  void ask_ahead();
  /// Look at locks that are waited for. @see awaits_lock
  void poll();
  /// Must poll() be called again and again?
  [[nodiscard]] bool awaits_lock() const noexcept {
    return !wanted_locks_.empty() || !wanted_guests_.empty() || !ticketed_.empty();
  }
  /// Is there an epoch that has not ended, the one behind the last fence left out?
  [[nodiscard]] bool in_use() const noexcept;
  [[nodiscard]] bool in_passive_epoch() const noexcept {
    return entered_.held || lock_all_ != nullptr || !locks_.empty();
  }
  /// Is there an epoch that the program has not closed? The one behind the last fence counts if it
  /// has operations.
  [[nodiscard]] bool is_open() const noexcept {
    return has_access_epoch() || exposure_ != nullptr || fence_in_use();
  }
  /// Has the program gone on without a lock of another window that its call might have waited for?
  /// It must not ask for one of this window: who asks for both in the same order may have got it.
  [[nodiscard]] bool is_behind_others() const noexcept { return locks_of_all_.ahead != ahead_; }
  /// Has the last fence begun an epoch? Epochs of other kinds may have come in between: others may
  /// have accessed this rank all the same.
  [[nodiscard]] bool is_behind_fence() const noexcept { return is_behind_fence_; }

 private:
  /// Of one other rank.
  struct Peer {
    std::uint32_t posts_seen = 0;
    std::uint32_t starts = 0;
    std::uint32_t completes_sent = 0;
    std::uint32_t completes_seen = 0;
    std::uint32_t exposures = 0;
  };
  /// A lock of this rank that another one has asked for and has not got.
  struct WantedLock {
    WindowLock::Ticket ticket = 0;
    LockType type{};
    Rank origin = 0;
    std::uint32_t id = 0;
  };

  /// Locks that have been entered while there was no epoch.
  struct EnteredLocks {
    EpochKind kind{};  ///< lock or lock_all
    LockType type{};
    bool held = false;
    bool returns_early = false;  ///< a lock of all, see Epoch
    Rank first = 0;
    std::uint32_t neighbours = 0;  ///< if the targets are so many neighbours from `first` on
    std::vector<Rank> targets;     ///< ascending
  };

  [[nodiscard]] bool try_enter_all(EpochKind kind, LockType type, std::span<const Rank> targets);
  [[nodiscard]] bool may_enter(Rank target, LockType type);
  [[nodiscard]] bool try_enter_now(Rank target, LockType type);
  void leave_first(std::size_t count);
  void set_entered() noexcept;
  [[nodiscard]] bool drop_entered() noexcept;
  void leave_entered();
  void settle();
  [[nodiscard]] Epoch& open(EpochKind kind);
  void close(Epoch*& epoch, Event* ended);
  void count_held(std::ptrdiff_t more) noexcept {
    held_ += static_cast<std::size_t>(more);
    locks_of_all_.held += static_cast<std::size_t>(more);
  }
  void count_ahead(std::ptrdiff_t more) noexcept {
    ahead_ += static_cast<std::size_t>(more);
    locks_of_all_.ahead += static_cast<std::size_t>(more);
  }
  void drop_idle_fence();
  [[nodiscard]] Access* find_access(Rank target);
  [[nodiscard]] Access& make_access(Epoch& epoch, Rank target, LockType type);
  [[nodiscard]] bool has_access_epoch() const noexcept {
    return access_ != nullptr || in_passive_epoch();
  }
  [[nodiscard]] bool fence_in_use() const noexcept {
    return fence_ != nullptr && !fence_->accesses.empty();
  }
  void flush_access(Access& access, bool local, Event& done);

  /// What comes in meanwhile is only recorded.
  template <class Body>
  void run_alone(Body&& body) {
    running_ = true;
    try {
      body();
    } catch (...) {
      host_.end_without_memory();
    }
    running_ = false;
  }
  void run();
  [[nodiscard]] bool step();
  void look_at(Access& access);
  void look_at_accesses(Rank target);
  void advance(Access& access);
  [[nodiscard]] bool is_kept_back(const Access& access) const noexcept;
  [[nodiscard]] Access* first_to_ask() const noexcept;
  [[nodiscard]] bool defers(Access& access);
  void ask(Access& access);
  [[nodiscard]] bool is_granted(Access& access);
  void start_waiting(Access& access);
  void serve_flushes(Access& access);
  void note_unasked(Access& access) noexcept {
    if (access.unasked || access.first != nullptr) return;
    if (access.written_age <= access.asked_age || !needs_answer(access)) return;
    if (ahead_left_ != 0) {
      --ahead_left_;
      return;
    }
    access.unasked = true;
    ++unasked_;
  }
  void drop_unasked(Access& access) noexcept {
    if (std::exchange(access.unasked, false)) --unasked_;
  }
  void note_asked(Access& access, std::uint64_t age) noexcept {
    access.asked_age = age;
    if (age >= access.written_age) drop_unasked(access);
  }
  /// The program writes on behind a question that was asked ahead: it would have been enough to ask
  /// later. Ever more rarely is asked, until a question has saved a wait.
  void note_asked_in_vain(Access& access) noexcept {
    if (!std::exchange(access.asked_ahead, false)) return;
    ahead_pause_ = std::clamp(ahead_pause_ * 2, 1U, ahead_pause_max);
    ahead_left_ = ahead_pause_;
  }
  [[nodiscard]] static bool needs_answer(const Access& access) noexcept;
  [[nodiscard]] bool is_written(Access& access, std::uint64_t age);
  void release(Access& access);
  void set_done(Access& access);
  [[nodiscard]] bool try_enter(WindowLock& lock, Rank owner, WindowLock::Ticket ticket,
                               LockType type);
  void leave(WindowLock& lock, Rank owner, LockType type);
  void look_at_tickets();
  void send(Rank to, const NoticeMessage& notice);
  void send_named(Access& access, NoticeMessage notice);
  void handle(Rank from, const NoticeMessage& notice);
  void on_answer(const NoticeMessage& notice);
  void want_lock(Rank origin, const NoticeMessage& notice);
  [[nodiscard]] bool may_grant(const WantedLock& wanted);
  void grant_wanted();
  [[nodiscard]] bool update_epochs();
  void activate(Epoch& epoch);
  [[nodiscard]] bool is_before(const Epoch& earlier, const Epoch& later) const noexcept;
  [[nodiscard]] bool is_blocked(std::size_t index) const noexcept;
  [[nodiscard]] bool may_begin(const Access& access) const noexcept;
  [[nodiscard]] bool may_pass(const Epoch& earlier, const Epoch& later) const noexcept;
  [[nodiscard]] bool has_ended(Epoch& epoch);
  [[nodiscard]] bool barrier_ended(Epoch& epoch);
  [[nodiscard]] bool is_exposure_over(const Epoch& epoch);
  void happen(Event* event);
  void happen_now(Event* event);

  Host& host_;
  const Rank self_;
  const Rank count_;
  const Reorder reorder_;
  std::vector<std::unique_ptr<Epoch>> epochs_;  ///< not ended, by opened_at
  std::unique_ptr<Epoch> spare_;                ///< for the next: programs open many, one by one
  bool is_behind_fence_ = false;
  Epoch* fence_ = nullptr;  ///< open ones
  Epoch* access_ = nullptr;
  Epoch* exposure_ = nullptr;
  Epoch* lock_all_ = nullptr;
  std::map<Rank, Epoch*> locks_;
  EnteredLocks entered_;
  std::unordered_map<Rank, Peer> peers_;
  std::unordered_map<std::uint32_t, Access*> by_id_;  ///< those that are named
  RingQueue<WantedLock> wanted_locks_;                ///< in the queue
  std::vector<WantedLock> wanted_guests_;
  std::vector<Access*> awaited_;   ///< have asked for their lock in turn, and have not got it
  std::vector<Access*> deferred_;  ///< ask behind those, each caller's in their order
  ProcessLocks& locks_of_all_;
  std::size_t held_ = 0;  ///< its part of those
  std::size_t ahead_ = 0;
  std::vector<Access*> ticketed_;              ///< with a ticket of a mapped lock, not served yet
  std::vector<std::uint32_t> fence_arrivals_;  ///< [round]
  std::uint32_t fences_ended_ = 0;
  std::uint32_t next_id_ = 0;
  Access* last_access_ = nullptr;  ///< found by access_to(), since an epoch has opened or closed
  std::uint64_t age_ = 0;          ///< operations so far
  std::size_t unasked_ = 0;        ///< accesses that are so
  static constexpr std::uint32_t ahead_pause_max = 256;
  std::uint32_t ahead_pause_ = 0;
  std::uint32_t ahead_left_ = 0;   ///< times that operations end, until one is asked for ahead
  std::uint64_t calls_ = 0;        ///< that open or close
  RingQueue<Access*> to_look_at_;  ///< oldest first: epochs ask in program order
  RingQueue<NoticeMessage> to_self_;
  bool epochs_changed_ = false;
  bool running_ = false;
};

}  // namespace overlap::newrma
