// Epochs: their kinds, what they consist of, and what ranks tell each other about them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

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

/// Whose calls have an order: a thread, of several that call MPI.
using Caller = const void*;

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
  bool in_turn = false;        ///< of a lock: asks for it in the order of its caller
  Caller caller = nullptr;     ///< if it is in turn
  bool deferred = false;       ///< among those that must not ask yet
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

/// Does it take the locks of its targets?
[[nodiscard]] inline bool takes_locks(const Epoch& epoch) noexcept {
  return is_passive(epoch) && !epoch.no_check;
}

/// Which epochs may become active before earlier ones have ended: the program says that they touch
/// different memory. Those of fences and lock_all never may.
struct Reorder {
  bool access_after_access = false;
  bool access_after_exposure = false;
  bool exposure_after_exposure = false;
  bool exposure_after_access = false;
};

}  // namespace overlap::newrma
