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

#include "ticket_lock.hpp"

namespace overlap::newrma {

using Rank = std::int32_t;  ///< in the window's group
using WindowLock = TicketLock<>;

/// What ranks tell each other about epochs; each pair's messages arrive in the order of sending,
/// operations' among them.
enum class Notice : std::uint8_t {
  post,      ///< an exposure epoch has begun that the other may access
  complete,  ///< an access epoch has ended: all its operations are before this message
  lock,      ///< give me the lock that `id` names from now on. `value`: LockType
  granted,   ///< `id` has it
  unlock,    ///< take it back: all operations are before this message. `value`: 1: answer
  unlocked,  ///< it is free, and everything before has been applied
  flush,     ///< tell me when everything before has been applied. `value`: age
  flushed,   ///< it has
  look,      ///< a ticket that you have taken may be served
  fence,     ///< I am in the fence; `value`: round of the dissemination
};

struct NoticeMessage {
  Notice notice{};
  LockType type{};          ///< unlock
  std::uint32_t id = 0;     ///< of an Access of the rank that asks
  std::uint64_t value = 0;  ///< see Notice
};

/// Does its sender learn by the answer that everything before has been applied?
[[nodiscard]] constexpr bool asks_for_answer(const NoticeMessage& notice) noexcept {
  return notice.notice == Notice::flush || (notice.notice == Notice::unlock && notice.value != 0);
}

/// Something that a call or a request waits for: happens when nothing is pending any more.
struct Event {
  std::uint32_t pending = 0;
};

struct Access;

/// One operation: a put, get or accumulate of any kind. The surroundings keep what it moves.
struct Operation {
  Access* access = nullptr;
  Operation* previous = nullptr;
  Operation* next = nullptr;
  std::uint64_t age = 0;  ///< number among the window's operations
  bool writes = false;    ///< at the target: known to be there only when the target has said so
};

enum class EpochKind : std::uint8_t { fence, access, exposure, lock, lock_all };

struct Epoch;

/// Accesses of one epoch to one target.
///
///   idle --epoch active--> asked --granted--> open --all done--> releasing --answer--> done
///                                               +--all known to be there----------------^
struct Access {
  enum class State : std::uint8_t { idle, asked, open, releasing, done };

  /// A flush of one target that has not happened.
  struct Flush {
    Event* event = nullptr;
    std::uint64_t age = 0;  ///< of the newest operation that it covers
    bool local = false;     ///< only until the origin's buffers are free
  };

  Access(Epoch& its_epoch, Rank its_target, std::uint32_t its_id, LockType its_type) noexcept
      : epoch(its_epoch), target(its_target), id(its_id), lock_type(its_type) {}
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;

  Epoch& epoch;
  const Rank target;
  const std::uint32_t id;
  const LockType lock_type;  ///< of a passive epoch
  State state = State::idle;
  bool listed = false;         ///< among those to look at
  bool in_turn = false;        ///< of a lock: asks for it in the order of the program
  bool deferred = false;       ///< among those that must not ask yet
  bool ahead = false;          ///< see Epochs::runs_ahead()
  bool named = false;          ///< by its id in messages, which are answered
  bool granted = false;        ///< the target has said so, or its lock has been entered
  std::uint32_t number = 0;    ///< of the target's posts for this rank: the one that grants
  WindowLock* lock = nullptr;  ///< of a passive epoch that takes a ticket of it
  WindowLock::Ticket ticket = 0;
  Event* on_grant = nullptr;
  Operation* first = nullptr;  ///< by age, all that are not done
  Operation* last = nullptr;
  Operation* waiting = nullptr;   ///< the first that has not been started
  std::uint64_t written_age = 0;  ///< newest started operation that writes
  std::uint64_t asked_age = 0;    ///< newest that a flush has gone out for
  std::uint64_t seen_age = 0;     ///< newest that the target has confirmed
  bool unasked = false;  ///< all operations are done, and nobody has asked whether they are there
  bool asked_ahead = false;  ///< and nothing has been written since
  bool copied = false;       ///< an operation has been carried out in its call
  std::vector<Flush> flushes;
};

struct Epoch {
  EpochKind kind{};
  LockType lock_type{};        ///< of a lock
  bool no_check = false;       ///< MPI_MODE_NOCHECK: the lock need not be taken
  bool returns_early = false;  ///< its call may wait for locks, and does not wait for all
  bool active = false;
  bool closed = false;
  std::uint64_t opened_at = 0;  ///< in the window's count of calls that open or close
  std::uint64_t closed_at = 0;
  Event* on_end = nullptr;
  std::vector<Rank> group;             ///< of an access or exposure epoch
  std::vector<std::uint32_t> awaited;  ///< exposure: number of each one's complete [group]
  std::map<Rank, Access> accesses;
  std::size_t accesses_left = 0;  ///< not done
  bool ends_access = true;        ///< of a fence: somebody may have accessed memory before it
  bool in_barrier = false;        ///< a fence's
  std::uint32_t round = 0;
};

/// Does its target take part by no call?
[[nodiscard]] inline bool is_passive(const Epoch& epoch) noexcept {
  return epoch.kind == EpochKind::lock || epoch.kind == EpochKind::lock_all;
}

/// Which epochs may become active before earlier ones have ended: the program says that they touch
/// different memory. Those of fences and lock_all never may.
struct Reorder {
  bool access_after_access = false;
  bool access_after_exposure = false;
  bool exposure_after_exposure = false;
  bool exposure_after_access = false;
};

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
  /// Does the program hold locks of other windows, or wait for some?
  [[nodiscard]] virtual bool holds_other_locks() { return false; }

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
  /// @param count  ranks of the window
  Epochs(Host& host, Rank self, Rank count, Reorder reorder);
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
  [[nodiscard]] bool lock(LockType type, Rank target, bool no_check, Event* granted,
                          bool returns_early = false);
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

  /// Several threads lock, each for itself: no lock waits for one of another call.
  void expect_threads() noexcept { locks_in_order_ = false; }
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
  /// Has the program gone on without a lock that its call might have waited for? Before it asks for
  /// one of another window it must: who asks for both in the same order may have got that one.
  [[nodiscard]] bool runs_ahead() const noexcept { return ahead_ != 0; }
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
  void no_longer_ahead(Access& access) noexcept {
    if (std::exchange(access.ahead, false)) --ahead_;
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
  std::vector<Access*> deferred_;  ///< ask behind those, in their order
  std::size_t ahead_ = 0;          ///< accesses that are so
  bool locks_in_order_ = true;
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
