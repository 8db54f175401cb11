// MPI's epoch calls: blocking ones wait for what the others return a request for.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/process.hpp"

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

/// Ask the epoch machine for something, and wait until its event has happened.
/// @param ask     (Epochs&, WaitedEvent&) -> bool: is it allowed here?
/// @param target  of a call that names one
template <class Ask>
int ask_and_wait(ompi_win_t* win, Leaves leaves, Ask&& ask, Rank target = 0) noexcept {
  return guarded([&]() -> int {
    Window& window = window_of(win);
    if (!window.has_rank(target)) return MPI_ERR_RANK;
    WaitedEvent event;
    event.leaves = leaves;
    event.target = target;
    bool ended = false;
    {
      const LeavingEntry entry(process->interrupts);
      window.note_synchronized();
      window.deliver_gathered();
      ++event.pending;  // it does not happen in the middle of the call
      if (!ask(window.epochs(), event)) return MPI_ERR_RMA_SYNC;
      window.let_go();
      ended = --event.pending == 0 && window.has_gone(event);
      if (!ended && event.pending == 0) window.end_when_gone(event);
    }
    if (ended) {
      progress_now_and_then(window.count_call_behind_stores());
    } else {
      wait_for(event);
    }
    return OMPI_SUCCESS;
  });
}

/// The same with a request for the event.
template <class Ask>
int ask_for_request(ompi_win_t* win, ompi_request_t** handle, Leaves leaves, Ask&& ask,
                    Rank target = 0) noexcept {
  return guarded([&]() -> int {
    Window& window = window_of(win);
    if (!window.has_rank(target)) return MPI_ERR_RANK;
    const LeavingEntry entry(process->interrupts);
    window.note_synchronized();
    window.deliver_gathered();
    WindowRequest& request = WindowRequest::make(*win);
    request.event.leaves = leaves;
    request.event.target = target;
    ++request.event.pending;  // not before the request is known to its caller
    const bool allowed = ask(window.epochs(), request.event);
    window.let_go();
    if (!allowed) {
      static_cast<void>(request.life.free());
      if (--request.event.pending == 0) request.end();
      return MPI_ERR_RMA_SYNC;
    }
    if (--request.event.pending == 0)
      window.end_when_gone(request.event);
    else
      process->interrupts.renew_demand();  // the window's is as old as the window
    *handle = &request.ompi;
    return OMPI_SUCCESS;
  });
}

/// The window's ranks of a group's members; MPI_UNDEFINED: of one that is not of the window.
std::vector<Rank> ranks_of(const Window& window, ompi_group_t* group) {
  const int count = ompi_group_size(group);
  std::vector<int> members(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) members[static_cast<std::size_t>(i)] = i;
  std::vector<Rank> ranks(members.size());
  if (count > 0)
    ompi_group_translate_ranks(group, count, members.data(), window.win().w_group, ranks.data());
  return ranks;
}

LockType type_of_lock(int lock_type) noexcept {
  return lock_type == MPI_LOCK_EXCLUSIVE ? LockType::exclusive : LockType::shared;
}

bool has(int assertion, int flag) noexcept { return (assertion & flag) != 0; }

// What each call asks for.

auto fence_of(const Window& window, int assertion) {
  return [assertion, shared = window.memory().flavor() == Flavor::shared](Epochs& epochs,
                                                                          Event& ended) {
    // An epoch that only begins needs no waiting: operations wait for their targets. But neighbours
    // may use shared memory without operations.
    const bool no_precede = has(assertion, MPI_MODE_NOPRECEDE);
    const bool waits = shared || epochs.fence_ends_epoch(no_precede);
    return epochs.fence(waits ? &ended : nullptr, !has(assertion, MPI_MODE_NOSUCCEED), no_precede);
  };
}

/// Open an epoch towards a group.
/// @param open  Epochs::start or Epochs::post
/// @param call  what the call does with what it asks for
template <class Call>
int open_towards(ompi_win_t* win, ompi_group_t* group, bool (Epochs::*open)(std::span<const Rank>),
                 Call&& call) noexcept {
  return guarded([&]() -> int {
    const std::vector<Rank> ranks = ranks_of(window_of(win), group);
    if (std::ranges::find(ranks, MPI_UNDEFINED) != ranks.end()) return MPI_ERR_GROUP;
    return call([&](Epochs& epochs, Event&) { return (epochs.*open)(ranks); });
  });
}

enum class LockCall : std::uint8_t {
  may_wait,
  waits,  ///< others of its process may lock, each thread for itself
  asks,   ///< and does not wait
};

auto lock_of(const Window& window, int lock_type, int target, int assertion, LockCall call) {
  // Its memory may be used without a call once the lock is there.
  const bool waits = call == LockCall::waits || target == window.self() ||
                     (window.has_rank(target) && window.memory().data_of(target) != nullptr);
  // The calls of one thread have an order.
  const Caller caller = opal_using_threads() ? LinuxPlatform::self() : nullptr;
  return [=, type = type_of_lock(lock_type)](Epochs& epochs, Event& granted) {
    return epochs.lock(type, target, has(assertion, MPI_MODE_NOCHECK), waits ? &granted : nullptr,
                       call == LockCall::may_wait && !waits, caller);
  };
}

auto lock_all_of(const Window& window, int assertion, bool waits) {
  return [&memory = window.memory(), assertion, waits](Epochs& epochs, Event& granted) {
    return epochs.lock_all(has(assertion, MPI_MODE_NOCHECK), memory.mapped_ranks(), &granted,
                           waits);
  };
}

auto unlock_of(int target) {
  return [target](Epochs& epochs, Event& ended) { return epochs.unlock(target, &ended); };
}

auto flush_of(int target, bool local) {
  return [=](Epochs& epochs, Event& done) { return epochs.flush(target, local, done); };
}

auto flush_all_of(bool local) {
  return [local](Epochs& epochs, Event& done) { return epochs.flush_all(local, done); };
}

/// An info key may have let it pass epochs towards others, who may compute.
bool complete_access(Epochs& epochs, WaitedEvent& ended) {
  const std::span<const Rank> group = epochs.started_group();
  ended.group.assign(group.begin(), group.end());
  return epochs.complete(&ended);
}
bool wait_exposure(Epochs& epochs, Event& ended) { return epochs.wait(&ended); }
bool unlock_every(Epochs& epochs, Event& ended) { return epochs.unlock_all(&ended); }

int test_exposure(ompi_win_t* win, int* flag) noexcept {
  opal_progress();
  const Entry entry;
  bool done = false;
  if (!window_of(win).epochs().test(done)) return MPI_ERR_RMA_SYNC;
  *flag = done ? 1 : 0;
  return OMPI_SUCCESS;
}

/// Apart, so that the short way saves no registers.
[[gnu::noinline]] int flush_and_wait(int target, ompi_win_t* win, bool local) noexcept {
  return ask_and_wait(win, Leaves::none, flush_of(target, local), target);
}

/// Operations on memory that this process maps have been carried out in their calls.
int flush_target(int target, ompi_win_t* win, bool local) noexcept {
  Window& window = window_of(win);
  bool over = false;
  {
    const Entry entry;
    over = window.is_flushed(target);
    window.note_synchronized();
  }
  if (!over) return flush_and_wait(target, win, local);
  progress_now_and_then(local ? window.count_call() : window.count_call_behind_stores());
  return OMPI_SUCCESS;
}

/// A lock that is free, while there is no other epoch, and its end. What enters or leaves it is an
/// atomic operation behind all stores; off x86-64 the look behind it at who waits
/// (TicketLock::is_in_use) keeps the loads that follow back.
/// @param act     (Epochs&) -> bool: has it been done at once?
/// @param target  of a call that names one
template <class Act>
bool do_at_once(ompi_win_t* win, Act&& act, Rank target = 0) noexcept {
  Window& window = window_of(win);
  if (!window.has_rank(target)) return false;
  std::uint32_t delay_ns = InterruptThread::no_ring;
  {
    const Entry entry;
    bool done = false;
    if (!window.has_left_work()) must_run([&] { done = act(window.epochs()); });
    if (!done) return false;
    window.note_synchronized();
    delay_ns = process->interrupts.must_ring();
  }
  if (delay_ns != InterruptThread::no_ring) [[unlikely]]
    process->interrupts.ring(delay_ns);
  progress_now_and_then(window.count_call());
  return true;
}

/// A thread waits in each call for its locks, and for no other thread's.
bool must_wait_for_others(const Window& window) noexcept {
  return !opal_using_threads() && window.is_behind_others();
}

/// Locks that are not free, or of a window with another epoch.
template <class Ask>
int lock_and_wait(ompi_win_t* win, int assertion, Ask&& ask, Rank target = 0) noexcept {
  return guarded([&]() -> int {
    if (!opal_using_threads() && !has(assertion, MPI_MODE_NOCHECK))
      wait_for_others_locks(window_of(win));
    return ask_and_wait(win, Leaves::none, ask, target);
  });
}

int synchronize_memory(ompi_win_t*) noexcept {
  await_stores();
  opal_progress();
  return OMPI_SUCCESS;
}

}  // namespace

void fill_epochs(ompi_osc_base_module_t& table) noexcept {
  table.osc_fence = [](int assertion, ompi_win_t* win) -> int {
    return ask_and_wait(win, Leaves::all, fence_of(window_of(win), assertion));
  };
  table.osc_start = [](ompi_group_t* group, int, ompi_win_t* win) -> int {
    return open_towards(win, group, &Epochs::start,
                        [&](auto&& ask) { return ask_and_wait(win, Leaves::none, ask); });
  };
  table.osc_complete = [](ompi_win_t* win) -> int {
    return ask_and_wait(win, Leaves::to_group, complete_access);
  };
  table.osc_post = [](ompi_group_t* group, int, ompi_win_t* win) -> int {
    return open_towards(win, group, &Epochs::post,
                        [&](auto&& ask) { return ask_and_wait(win, Leaves::none, ask); });
  };
  table.osc_wait = [](ompi_win_t* win) -> int {
    return ask_and_wait(win, Leaves::none, wait_exposure);
  };
  table.osc_test = test_exposure;
  table.osc_lock = [](int type, int target, int assertion, ompi_win_t* win) -> int {
    const Window& window = window_of(win);
    const auto enter = [=, &window](Epochs& epochs) {
      if (has(assertion, MPI_MODE_NOCHECK) || must_wait_for_others(window)) return false;
      return epochs.try_lock(type_of_lock(type), target);
    };
    if (do_at_once(win, enter, target)) return OMPI_SUCCESS;
    const LockCall call = opal_using_threads() ? LockCall::waits : LockCall::may_wait;
    return lock_and_wait(win, assertion, lock_of(window, type, target, assertion, call), target);
  };
  table.osc_unlock = [](int target, ompi_win_t* win) -> int {
    if (do_at_once(
            win, [=](Epochs& epochs) { return epochs.try_unlock(target); }, target))
      return OMPI_SUCCESS;
    return ask_and_wait(win, Leaves::to_target, unlock_of(target), target);
  };
  table.osc_lock_all = [](int assertion, ompi_win_t* win) -> int {
    const Window& window = window_of(win);
    const auto enter = [=, &window](Epochs& epochs) {
      if (has(assertion, MPI_MODE_NOCHECK) || must_wait_for_others(window)) return false;
      return epochs.try_lock_all(window.memory().mapped_ranks());
    };
    if (do_at_once(win, enter)) return OMPI_SUCCESS;
    return lock_and_wait(win, assertion, lock_all_of(window, assertion, true));
  };
  table.osc_unlock_all = [](ompi_win_t* win) -> int {
    if (do_at_once(win, [](Epochs& epochs) { return epochs.try_unlock_all(); }))
      return OMPI_SUCCESS;
    return ask_and_wait(win, Leaves::all, unlock_every);
  };
  table.osc_sync = synchronize_memory;
  table.osc_flush = [](int target, ompi_win_t* win) -> int {
    return flush_target(target, win, false);
  };
  table.osc_flush_all = [](ompi_win_t* win) -> int {
    return ask_and_wait(win, Leaves::none, flush_all_of(false));
  };
  table.osc_flush_local = [](int target, ompi_win_t* win) -> int {
    return flush_target(target, win, true);
  };
  table.osc_flush_local_all = [](ompi_win_t* win) -> int {
    return ask_and_wait(win, Leaves::none, flush_all_of(true));
  };
}

constinit const overlap_nonblocking_calls nonblocking_table = {
    .magic = OVERLAP_NONBLOCKING_MAGIC,
    .version = OVERLAP_NONBLOCKING_VERSION,
    .ifence = [](int assertion, ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::all, fence_of(window_of(win), assertion));
    },
    .ipost = [](ompi_group_t* group, int, ompi_win_t* win, ompi_request_t** request) -> int {
      return open_towards(win, group, &Epochs::post, [&](auto&& ask) {
        return ask_for_request(win, request, Leaves::none, ask);
      });
    },
    .istart = [](ompi_group_t* group, int, ompi_win_t* win, ompi_request_t** request) -> int {
      return open_towards(win, group, &Epochs::start, [&](auto&& ask) {
        return ask_for_request(win, request, Leaves::none, ask);
      });
    },
    .icomplete = [](ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::to_group, complete_access);
    },
    .iwait = [](ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none, wait_exposure);
    },
    .ilock = [](int type, int target, int assertion, ompi_win_t* win,
                ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none,
                             lock_of(window_of(win), type, target, assertion, LockCall::asks),
                             target);
    },
    .iunlock = [](int target, ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::to_target, unlock_of(target), target);
    },
    .ilock_all = [](int assertion, ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none,
                             lock_all_of(window_of(win), assertion, false));
    },
    .iunlock_all = [](ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::all, unlock_every);
    },
    .iflush = [](int target, ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none, flush_of(target, false), target);
    },
    .iflush_local = [](int target, ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none, flush_of(target, true), target);
    },
    .iflush_all = [](ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none, flush_all_of(false));
    },
    .iflush_local_all = [](ompi_win_t* win, ompi_request_t** request) -> int {
      return ask_for_request(win, request, Leaves::none, flush_all_of(true));
    }};

}  // namespace overlap::newrma
