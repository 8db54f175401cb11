// The epoch machine: what the calls have changed is looked at in one loop, so that nothing calls
// itself.
// SPDX-License-Identifier: BSD-3-Clause
#include "epochs.hpp"

#include <algorithm>
#include <utility>

namespace overlap::newrma {
namespace {

/// Has a wrapping count reached a number?
bool has_reached(std::uint32_t count, std::uint32_t number) noexcept {
  return static_cast<std::int32_t>(count - number) >= 0;
}

bool is_exposure(const Epoch& epoch) noexcept { return epoch.kind == EpochKind::exposure; }

bool never_reordered(const Epoch& epoch) noexcept {
  return epoch.kind == EpochKind::fence || epoch.kind == EpochKind::lock_all;
}

}  // namespace

void Epochs::look_at(Access& access) {
  // One that is done may go with its epoch, before the list is looked through.
  if (access.listed || access.state == Access::State::done) return;
  access.listed = true;
  to_look_at_.push(&access);
}

/// Those between start and complete.
void Epochs::look_at_accesses(Rank target) {
  for (const auto& epoch : epochs_) {
    if (epoch->kind != EpochKind::access) continue;
    const auto found = epoch->accesses.find(target);
    if (found != epoch->accesses.end()) look_at(found->second);
  }
}

void Epochs::run() {
  if (running_) return;
  run_alone([this] {
    while (step()) {}
  });
}

/// Do one thing that is to be done. @returns  whether there may be more
bool Epochs::step() {
  if (!to_self_.empty()) {
    const NoticeMessage notice = to_self_.front();
    to_self_.pop();
    handle(self_, notice);
    return true;
  }
  if (Access* const next = first_to_ask(); next != nullptr) {
    std::erase(deferred_, next);
    next->deferred = false;
    ask(*next);
    advance(*next);
    return true;
  }
  if (!to_look_at_.empty()) {
    Access& access = *to_look_at_.front();
    to_look_at_.pop();
    access.listed = false;
    advance(access);
    return true;
  }
  return update_epochs();
}

void Epochs::ask_ahead() {
  if (running_) return;
  run_alone([this] {
    for (const auto& epoch : epochs_) {
      for (auto& [target, access] : epoch->accesses) {
        if (!access.unasked) continue;
        static_cast<void>(is_written(access, access.written_age));
        access.asked_ahead = true;
      }
    }
  });
  run();
}

void Epochs::advance(Access& access) {
  if (access.state == Access::State::idle) {
    if (!may_begin(access) || defers(access)) return;
    ask(access);
  }
  if (access.state == Access::State::asked) {
    if (!is_granted(access)) return;
    std::erase(awaited_, &access);
    if (access.epoch.returns_early) count_ahead(-1);
    access.state = Access::State::open;
    happen(std::exchange(access.on_grant, nullptr));
  }
  if (access.state == Access::State::releasing && !needs_answer(access)) set_done(access);
  if (access.state != Access::State::open) return;
  start_waiting(access);
  serve_flushes(access);
  if (access.epoch.closed && access.first == nullptr && access.flushes.empty()) release(access);
}

bool Epochs::try_enter(WindowLock& lock, Rank owner, WindowLock::Ticket ticket, LockType type) {
  if (!lock.try_enter(ticket, type)) return false;
  if (type == LockType::shared && lock.is_taken(ticket + 1)) host_.passed_turn(owner);
  return true;
}

void Epochs::leave(WindowLock& lock, Rank owner, LockType type) {
  if (lock.leave(type) != 0) host_.let_guests_in(owner);
  if (lock.is_in_use()) host_.passed_turn(owner);
}

/// Does one wait for its lock that its caller has asked for before? Also one that is closed
/// meanwhile: the call that closes it may wait for its lock, and this one must not be held then.
/// What was closed before this one was opened, an info key lets it pass.
bool Epochs::is_kept_back(const Access& access) const noexcept {
  return std::ranges::any_of(awaited_, [&](const Access* each) {
    const Epoch &earlier = each->epoch, &later = access.epoch;
    if (each->caller != access.caller || earlier.opened_at > later.opened_at) return false;
    return !earlier.closed || earlier.closed_at > later.opened_at;
  });
}

/// Of those that are deferred, each caller's first keeps the others back.
Access* Epochs::first_to_ask() const noexcept {
  const auto found = std::ranges::find_if(deferred_, [this](const Access* each) {
    return each == *std::ranges::find(deferred_, each->caller, &Access::caller) &&
           !is_kept_back(*each);
  });
  return found == deferred_.end() ? nullptr : *found;
}

/// Who waits for a lock asks for no other one meanwhile: locks are granted in the order in which
/// their caller asks for them. Two that ask in the same order never wait for each other, as with
/// calls that wait. One that is closed goes when it gets its lock, so nobody waits for it longer.
bool Epochs::defers(Access& access) {
  if (!access.in_turn || access.epoch.no_check) return false;
  if (access.epoch.closed) {
    if (std::exchange(access.deferred, false)) std::erase(deferred_, &access);
    return false;
  }
  if (access.deferred) return true;
  // Those that are deferred are open, and keep later ones back.
  const bool follows =
      std::ranges::find(deferred_, access.caller, &Access::caller) != deferred_.end();
  if (!follows && !is_kept_back(access)) return false;
  access.deferred = true;
  deferred_.push_back(&access);
  return true;
}

void Epochs::ask(Access& access) {
  access.state = Access::State::asked;
  const Epoch& epoch = access.epoch;
  if (epoch.kind == EpochKind::access) {
    access.number = ++peers_[access.target].starts;
  } else if (access.lock != nullptr) {
    access.ticket = access.lock->take(access.lock_type);
    access.granted = try_enter(*access.lock, access.target, access.ticket, access.lock_type);
    if (access.granted) return;
    if (access.lock_type != LockType::guest)
      host_.took_ticket(access.target, access.ticket);  // and is_granted() looks again
    if (access.in_turn) awaited_.push_back(&access);
    ticketed_.push_back(&access);
  } else if (takes_locks(epoch)) {
    if (access.in_turn) awaited_.push_back(&access);
    send_named(access,
               {.notice = Notice::lock, .value = static_cast<std::uint64_t>(access.lock_type)});
  }
}

bool Epochs::is_granted(Access& access) {
  const Epoch& epoch = access.epoch;
  if (epoch.kind == EpochKind::access)
    return has_reached(peers_[access.target].posts_seen, access.number);
  if (epoch.kind == EpochKind::fence || epoch.no_check) return true;
  if (access.granted || access.lock == nullptr) return access.granted;
  if (!try_enter(*access.lock, access.target, access.ticket, access.lock_type)) return false;
  std::erase(ticketed_, &access);
  return true;
}

void Epochs::start_waiting(Access& access) {
  while (access.waiting != nullptr) {
    Operation& operation = *access.waiting;
    access.waiting = operation.next;
    if (operation.writes) access.written_age = operation.age;
    host_.start(operation);  // it may be done, and gone
  }
}

/// Must the target say that it has the writes before the epoch may end? Not where it waits itself,
/// for a message that goes behind them.
bool Epochs::needs_answer(const Access& access) noexcept {
  return access.epoch.kind != EpochKind::access && access.written_age > access.seen_age;
}

/// Is everything up to an age known to be at the target? Asks if it is not.
bool Epochs::is_written(Access& access, std::uint64_t age) {
  if (access.written_age <= access.seen_age || age <= access.seen_age) return true;
  age = std::min(age, access.written_age);
  if (access.asked_age < age) {
    note_asked(access, age);
    send_named(access, {.notice = Notice::flush, .value = age});
  }
  return false;
}

void Epochs::serve_flushes(Access& access) {
  std::erase_if(access.flushes, [&](const Access::Flush& flush) {
    if (access.first != nullptr && access.first->age <= flush.age) return false;
    if (!flush.local && !is_written(access, flush.age)) return false;
    happen(flush.event);
    return true;
  });
}

void Epochs::release(Access& access) {
  const Epoch& epoch = access.epoch;
  if (epoch.kind == EpochKind::access) {
    // The target counts: of reordered epochs, too, each one's comes in program order.
    Peer& peer = peers_[access.target];
    if (access.number != peer.completes_sent + 1) return;
    ++peer.completes_sent;
    send(access.target, {.notice = Notice::complete});
    look_at_accesses(access.target);
  } else if (takes_locks(epoch) && access.lock == nullptr) {
    const bool waits = needs_answer(access);
    const bool asks = waits && access.asked_age < access.written_age;
    if (waits) access.state = Access::State::releasing;
    if (asks) note_asked(access, access.written_age);
    send_named(access,
               {.notice = Notice::unlock, .type = access.lock_type, .value = asks ? 1U : 0U});
    if (waits) return;
  } else {
    if (needs_answer(access) && !is_written(access, access.written_age)) return;
    if (access.lock != nullptr) {
      leave(*access.lock, access.target, access.lock_type);
      grant_wanted();
    }
  }
  set_done(access);
}

void Epochs::set_done(Access& access) {
  access.state = Access::State::done;
  drop_unasked(access);
  if (access.asked_ahead) ahead_pause_ = ahead_left_ = 0;
  if (access.named) by_id_.erase(access.id);
  --access.epoch.accesses_left;
  epochs_changed_ = true;
}

// Messages.

void Epochs::send(Rank to, const NoticeMessage& notice) {
  if (to == self_)
    to_self_.push(notice);
  else
    host_.send(to, notice);
}

/// What is answered, or belongs to what has been asked for.
void Epochs::send_named(Access& access, NoticeMessage notice) {
  if (!std::exchange(access.named, true)) by_id_.emplace(access.id, &access);
  notice.id = access.id;
  send(access.target, notice);
}

void Epochs::on_notice(Rank from, const NoticeMessage& notice) {
  handle(from, notice);
  run();
}

void Epochs::handle(Rank from, const NoticeMessage& notice) {
  switch (notice.notice) {
    case Notice::post:
      ++peers_[from].posts_seen;
      look_at_accesses(from);
      break;
    case Notice::complete:
      ++peers_[from].completes_seen;
      epochs_changed_ = true;
      break;
    case Notice::lock: want_lock(from, notice); break;
    case Notice::unlock:
      leave(*host_.lock_of(self_), self_, notice.type);
      if (asks_for_answer(notice)) send(from, {.notice = Notice::unlocked, .id = notice.id});
      grant_wanted();
      break;
    case Notice::flush:
      send(from, {.notice = Notice::flushed, .id = notice.id, .value = notice.value});
      break;
    case Notice::look: look_at_tickets(); break;
    case Notice::fence:
      ++fence_arrivals_[notice.value];
      epochs_changed_ = true;
      break;
    case Notice::granted:
    case Notice::unlocked:
    case Notice::flushed: on_answer(notice); break;
  }
}

void Epochs::on_answer(const NoticeMessage& notice) {
  const auto found = by_id_.find(notice.id);
  if (found == by_id_.end()) return;
  Access& access = *found->second;
  // Nothing ends here: answers may come inside a send, while epochs are looked through.
  if (notice.notice == Notice::granted)
    access.granted = true;
  else if (notice.notice == Notice::flushed)
    access.seen_age = std::max(access.seen_age, notice.value);
  else
    access.seen_age = access.written_age;
  look_at(access);
}

void Epochs::want_lock(Rank origin, const NoticeMessage& notice) {
  const auto type = static_cast<LockType>(notice.value);
  const WantedLock wanted{host_.lock_of(self_)->take(type), type, origin, notice.id};
  if (type == LockType::guest) {
    wanted_guests_.push_back(wanted);
  } else {
    host_.took_ticket(self_, wanted.ticket);
    wanted_locks_.push(wanted);
  }
  grant_wanted();
}

/// What comes in while a grant goes out may bring more of them.
void Epochs::grant_wanted() {
  for (std::size_t i = 0; i < wanted_guests_.size();) {
    const WantedLock wanted = wanted_guests_[i];
    if (!may_grant(wanted)) {
      ++i;
      continue;
    }
    wanted_guests_.erase(wanted_guests_.begin() + static_cast<std::ptrdiff_t>(i));
    send(wanted.origin, {.notice = Notice::granted, .id = wanted.id});
    i = 0;
  }
  // Tickets are served in their order: behind one that is not, none is.
  while (!wanted_locks_.empty()) {
    const WantedLock wanted = wanted_locks_.front();
    if (!may_grant(wanted)) return;
    wanted_locks_.pop();
    send(wanted.origin, {.notice = Notice::granted, .id = wanted.id});
  }
}

bool Epochs::may_grant(const WantedLock& wanted) {
  return try_enter(*host_.lock_of(self_), self_, wanted.ticket, wanted.type);
}

void Epochs::look_at_tickets() {
  grant_wanted();
  for (Access* access : ticketed_) look_at(*access);
}

void Epochs::poll() {
  look_at_tickets();
  run();
}

// Epochs.

/// @returns  whether there is more to do
bool Epochs::update_epochs() {
  if (!std::exchange(epochs_changed_, false)) return false;
  for (std::size_t i = 0; i < epochs_.size(); ++i) {
    Epoch& epoch = *epochs_[i];
    if (epoch.active) continue;
    if (!is_blocked(i)) activate(epoch);
    const auto own = epoch.accesses.find(self_);
    if (own != epoch.accesses.end()) look_at(own->second);  // it may begin before the others
  }
  for (std::size_t i = 0; i < epochs_.size();) {
    if (!has_ended(*epochs_[i])) {
      ++i;
      continue;
    }
    happen(epochs_[i]->on_end);
    spare_ = std::move(epochs_[i]);
    *spare_ = Epoch{};
    epochs_.erase(epochs_.begin() + static_cast<std::ptrdiff_t>(i));
    epochs_changed_ = true;  // others may become active
  }
  return epochs_changed_ || !to_look_at_.empty() || !to_self_.empty();
}

/// Must the later one wait until the earlier one has ended?
bool Epochs::is_before(const Epoch& earlier, const Epoch& later) const noexcept {
  return earlier.closed && earlier.closed_at < later.opened_at && !may_pass(earlier, later);
}

bool Epochs::is_blocked(std::size_t index) const noexcept {
  const Epoch& later = *epochs_[index];
  return std::any_of(epochs_.begin(), epochs_.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const auto& earlier) { return is_before(*earlier, later); });
}

/// Behind a fence that ends no access, this rank need not wait until others come to the fence as
/// well before it accesses its own memory. (Programs have used the results of such operations
/// without a call in between.)
bool Epochs::may_begin(const Access& access) const noexcept {
  const Epoch& epoch = access.epoch;
  if (epoch.active) return true;
  if (epoch.kind != EpochKind::fence || access.target != self_) return false;
  return std::ranges::none_of(epochs_, [&](const auto& earlier) {
    return is_before(*earlier, epoch) &&
           (earlier->kind != EpochKind::fence || earlier->ends_access);
  });
}

bool Epochs::may_pass(const Epoch& earlier, const Epoch& later) const noexcept {
  if (never_reordered(earlier) || never_reordered(later)) return false;
  if (is_exposure(later))
    return is_exposure(earlier) ? reorder_.exposure_after_exposure : reorder_.exposure_after_access;
  return is_exposure(earlier) ? reorder_.access_after_exposure : reorder_.access_after_access;
}

void Epochs::activate(Epoch& epoch) {
  epoch.active = true;
  for (auto& [target, access] : epoch.accesses) look_at(access);
  for (const Rank other : epoch.group) {
    if (is_exposure(epoch)) {
      epoch.awaited.push_back(++peers_[other].exposures);
      send(other, {.notice = Notice::post});
    } else if (!epoch.accesses.contains(other)) {
      static_cast<void>(make_access(epoch, other, {}));
    }
  }
}

bool Epochs::has_ended(Epoch& epoch) {
  if (!epoch.active || !epoch.closed || epoch.accesses_left != 0) return false;
  if (epoch.kind == EpochKind::fence) return barrier_ended(epoch);
  return !is_exposure(epoch) || is_exposure_over(epoch);
}

bool Epochs::is_exposure_over(const Epoch& epoch) {
  for (std::size_t i = 0; i < epoch.awaited.size(); ++i) {
    if (!has_reached(peers_[epoch.group[i]].completes_seen, epoch.awaited[i])) return false;
  }
  return true;
}

/// Dissemination: in round k everybody tells the rank 2^k further on.
bool Epochs::barrier_ended(Epoch& epoch) {
  const auto rounds = static_cast<std::uint32_t>(fence_arrivals_.size());
  const auto tell = [&] {
    if (epoch.round == rounds) return;
    const auto to = (std::int64_t{self_} + (std::int64_t{1} << epoch.round)) % count_;
    send(static_cast<Rank>(to), {.notice = Notice::fence, .value = epoch.round});
  };
  if (!std::exchange(epoch.in_barrier, true)) tell();
  while (epoch.round < rounds && has_reached(fence_arrivals_[epoch.round], fences_ended_ + 1)) {
    ++epoch.round;
    tell();
  }
  if (epoch.round < rounds) return false;
  ++fences_ended_;
  return true;
}

void Epochs::happen(Event* event) {
  if (event != nullptr && --event->pending == 0) host_.happened(*event);
}

/// Nothing is pending for it.
void Epochs::happen_now(Event* event) {
  if (event != nullptr && event->pending == 0) host_.happened(*event);
}

bool Epochs::in_use() const noexcept {
  if (entered_.held) return true;
  return std::ranges::any_of(epochs_, [this](const auto& each) {
    return each.get() != fence_ || !each->accesses.empty();
  });
}

}  // namespace overlap::newrma
