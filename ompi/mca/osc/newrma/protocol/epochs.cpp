// The epoch machine.
// SPDX-License-Identifier: BSD-3-Clause
#include "epochs.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace overlap::newrma {
namespace {

/// Has a wrapping count reached a number?
bool has_reached(std::uint32_t count, std::uint32_t number) noexcept {
  return static_cast<std::int32_t>(count - number) >= 0;
}

std::uint32_t rounds_of(Rank count) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint32_t>(count) - 1));
}

bool is_exposure(const Epoch& epoch) noexcept { return epoch.kind == EpochKind::exposure; }

bool never_reordered(const Epoch& epoch) noexcept {
  return epoch.kind == EpochKind::fence || epoch.kind == EpochKind::lock_all;
}

bool is_passive(const Epoch& epoch) noexcept {
  return epoch.kind == EpochKind::lock || epoch.kind == EpochKind::lock_all;
}

}  // namespace

Epochs::Epochs(Host& host, Rank self, Rank count, Reorder reorder)
    : host_(host),
      self_(self),
      count_(count),
      reorder_(reorder),
      fence_arrivals_(rounds_of(count)) {}

Epochs::~Epochs() = default;

// Opening and closing.

Epoch& Epochs::open(EpochKind kind) {
  last_access_ = nullptr;
  auto made = std::make_unique<Epoch>();
  made->kind = kind;
  made->opened_at = ++calls_;
  epochs_.push_back(std::move(made));
  epochs_changed_ = true;
  return *epochs_.back();
}

void Epochs::close(Epoch*& epoch, Event* ended) {
  last_access_ = nullptr;
  if (ended != nullptr) ++ended->pending;
  epoch->on_end = ended;
  epoch->closed = true;
  epoch->closed_at = ++calls_;
  for (auto& [target, access] : epoch->accesses) look_at(*access);
  epoch = nullptr;
  epochs_changed_ = true;
}

/// A fence begins an access epoch only if operations follow: another kind of epoch may follow
/// instead. The exposure to others stays (is_behind_fence).
void Epochs::drop_idle_fence() {
  if (fence_ == nullptr) return;
  last_access_ = nullptr;
  std::erase_if(epochs_, [this](const auto& each) { return each.get() == fence_; });
  fence_ = nullptr;
}

bool Epochs::fence(Event* ended, bool begin_next) {
  if (has_access_epoch() || exposure_ != nullptr) return false;
  if (fence_ == nullptr) fence_ = &open(EpochKind::fence);
  close(fence_, ended);
  if (begin_next) fence_ = &open(EpochKind::fence);
  is_behind_fence_ = begin_next;
  run();
  return true;
}

bool Epochs::start(std::span<const Rank> group) {
  if (has_access_epoch() || fence_in_use()) return false;
  drop_idle_fence();
  access_ = &open(EpochKind::access);
  access_->group.assign(group.begin(), group.end());
  run();
  return true;
}

bool Epochs::complete(Event* ended) {
  if (access_ == nullptr) return false;
  close(access_, ended);
  run();
  return true;
}

bool Epochs::post(std::span<const Rank> group) {
  if (exposure_ != nullptr || fence_in_use()) return false;
  drop_idle_fence();
  exposure_ = &open(EpochKind::exposure);
  exposure_->group.assign(group.begin(), group.end());
  run();
  return true;
}

bool Epochs::wait(Event* ended) {
  if (exposure_ == nullptr) return false;
  close(exposure_, ended);
  run();
  return true;
}

bool Epochs::test(bool& done) {
  if (exposure_ == nullptr) return false;
  done = exposure_->active && is_exposure_over(*exposure_);
  return done ? wait(nullptr) : true;
}

bool Epochs::lock(LockType type, Rank target, bool no_check, Event* granted) {
  if (access_ != nullptr || lock_all_ != nullptr || fence_in_use() || locks_.contains(target))
    return false;
  drop_idle_fence();
  Epoch& epoch = open(EpochKind::lock);
  epoch.lock_type = type;
  epoch.no_check = no_check;
  locks_.emplace(target, &epoch);
  Access& access = make_access(epoch, target);
  if (granted != nullptr) ++granted->pending;
  access.on_grant = granted;
  run();
  return true;
}

bool Epochs::unlock(Rank target, Event* ended) {
  const auto found = locks_.find(target);
  if (found == locks_.end()) return false;
  Epoch* epoch = found->second;
  locks_.erase(found);
  close(epoch, ended);
  run();
  return true;
}

bool Epochs::lock_all(bool no_check, std::span<const Rank> now, Event* granted) {
  if (has_access_epoch() || fence_in_use()) return false;
  drop_idle_fence();
  lock_all_ = &open(EpochKind::lock_all);
  lock_all_->no_check = no_check;
  if (granted != nullptr) ++granted->pending;  // not before all are counted
  for (const Rank target : now) {
    Access& access = make_access(*lock_all_, target);
    if (granted != nullptr) ++granted->pending;
    access.on_grant = granted;
  }
  happen(granted);
  run();
  return true;
}

bool Epochs::unlock_all(Event* ended) {
  if (lock_all_ == nullptr) return false;
  close(lock_all_, ended);
  run();
  return true;
}

void Epochs::flush_access(Access& access, bool local, Event& done) {
  // Nothing to cover: the lock need not be waited for.
  if (access.first == nullptr && (local || access.written_age <= access.seen_age)) return;
  ++done.pending;
  access.flushes.push_back({&done, age_, local});
  look_at(access);
}

bool Epochs::flush(Rank target, bool local, Event& done) {
  Epoch* epoch = lock_all_;
  if (const auto found = locks_.find(target); found != locks_.end()) epoch = found->second;
  if (epoch == nullptr) return false;
  ++done.pending;  // not before it is counted
  if (const auto found = epoch->accesses.find(target); found != epoch->accesses.end())
    flush_access(*found->second, local, done);
  happen(&done);
  run();
  return true;
}

bool Epochs::flush_all(bool local, Event& done) {
  if (!in_passive_epoch()) return false;
  ++done.pending;  // not before all are counted
  if (lock_all_ != nullptr) {
    for (auto& [target, access] : lock_all_->accesses) flush_access(*access, local, done);
  }
  for (auto& [target, epoch] : locks_) flush_access(*epoch->accesses.at(target), local, done);
  happen(&done);
  run();
  return true;
}

// Operations.

Access* Epochs::find_access(Rank target) {
  Epoch* epoch = lock_all_;
  if (const auto found = locks_.find(target); found != locks_.end()) {
    epoch = found->second;
  } else if (access_ != nullptr) {
    if (std::ranges::find(access_->group, target) == access_->group.end()) return nullptr;
    epoch = access_;
  } else if (epoch == nullptr) {
    epoch = fence_;
  }
  if (epoch == nullptr) return nullptr;
  const auto found = epoch->accesses.find(target);
  if (found != epoch->accesses.end()) return found->second.get();
  Access& made = make_access(*epoch, target);
  run();
  return &made;
}

Access& Epochs::make_access(Epoch& epoch, Rank target) {
  auto made = std::make_unique<Access>(epoch, target, next_id_++);
  Access& access = *made;
  by_id_.emplace(access.id, &access);
  epoch.accesses.emplace(target, std::move(made));
  ++epoch.accesses_left;
  look_at(access);
  return access;
}

void Epochs::add(Operation& operation, Access& access) {
  operation.access = &access;
  operation.age = ++age_;
  operation.previous = access.last;
  operation.next = nullptr;
  (access.last != nullptr ? access.last->next : access.first) = &operation;
  access.last = &operation;
  if (access.waiting == nullptr) access.waiting = &operation;
  look_at(access);
  run();
}

void Epochs::operation_done(Operation& operation) {
  Access& access = *operation.access;
  (operation.previous != nullptr ? operation.previous->next : access.first) = operation.next;
  (operation.next != nullptr ? operation.next->previous : access.last) = operation.previous;
  if (access.epoch.closed || !access.flushes.empty()) {
    look_at(access);
    run();
  }
}

// Running: what has changed is looked at in one loop, so that nothing calls itself.

void Epochs::look_at(Access& access) {
  // One that is done may go with its epoch, before the list is looked through.
  if (access.listed || access.state == Access::State::done) return;
  access.listed = true;
  to_look_at_.push_back(&access);
}

/// Those between start and complete.
void Epochs::look_at_accesses(Rank target) {
  for (const auto& epoch : epochs_) {
    if (epoch->kind != EpochKind::access) continue;
    const auto found = epoch->accesses.find(target);
    if (found != epoch->accesses.end()) look_at(*found->second);
  }
}

void Epochs::run() {
  if (running_) return;
  running_ = true;
  for (;;) {
    if (!to_self_.empty()) {
      const NoticeMessage notice = to_self_.front();
      to_self_.pop_front();
      handle(self_, notice);
    } else if (!to_look_at_.empty()) {
      Access& access = *to_look_at_.front();
      to_look_at_.pop_front();
      access.listed = false;
      advance(access);
    } else if (!update_epochs()) {
      break;
    }
  }
  running_ = false;
}

void Epochs::advance(Access& access) {
  if (access.state == Access::State::idle) {
    if (!access.epoch.active) return;
    ask(access);
  }
  if (access.state == Access::State::asked) {
    if (!is_granted(access)) return;
    access.state = Access::State::open;
    happen(std::exchange(access.on_grant, nullptr));
  }
  if (access.state != Access::State::open) return;
  start_waiting(access);
  serve_flushes(access);
  if (access.epoch.closed && access.first == nullptr && access.flushes.empty()) release(access);
}

bool Epochs::takes_ticket(const Access& access) {
  return is_passive(access.epoch) && !access.epoch.no_check &&
         host_.lock_of(access.target) != nullptr;
}

WindowLock::Ticket Epochs::take_ticket(Rank owner) {
  const WindowLock::Ticket ticket = host_.lock_of(owner)->take();
  host_.took_ticket(owner, ticket);
  return ticket;
}

bool Epochs::try_enter(Rank owner, WindowLock::Ticket ticket, LockType type) {
  if (!host_.lock_of(owner)->try_enter(ticket, type)) return false;
  if (type == LockType::shared) host_.passed_turn(owner);
  return true;
}

void Epochs::leave(Rank owner, LockType type) {
  host_.lock_of(owner)->leave(type);
  host_.passed_turn(owner);
}

void Epochs::ask(Access& access) {
  access.state = Access::State::asked;
  const Epoch& epoch = access.epoch;
  if (epoch.kind == EpochKind::access) {
    access.number = ++peers_[access.target].starts;
  } else if (takes_ticket(access)) {
    access.ticket = take_ticket(access.target);
    ticketed_.push_back(&access);
  } else if (is_passive(epoch) && !epoch.no_check) {
    send(access.target, {.notice = Notice::lock,
                         .id = access.id,
                         .value = static_cast<std::uint64_t>(epoch.lock_type)});
  }
}

bool Epochs::is_granted(Access& access) {
  const Epoch& epoch = access.epoch;
  if (epoch.kind == EpochKind::access)
    return has_reached(peers_[access.target].posts_seen, access.number);
  if (epoch.kind == EpochKind::fence || epoch.no_check) return true;
  if (!takes_ticket(access)) return access.granted;
  if (!try_enter(access.target, access.ticket, epoch.lock_type)) return false;
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

/// Is everything up to an age known to be at the target? Asks if it is not.
bool Epochs::is_written(Access& access, std::uint64_t age) {
  if (access.written_age <= access.seen_age || age <= access.seen_age) return true;
  if (access.asked_age < age) {
    access.asked_age = age;
    send(access.target, {.notice = Notice::flush, .id = access.id, .value = age});
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
  } else if (is_passive(epoch) && !epoch.no_check && !takes_ticket(access)) {
    access.state = Access::State::releasing;
    send(access.target, {.notice = Notice::unlock, .type = epoch.lock_type, .id = access.id});
    return;
  } else {
    if (!is_written(access, access.written_age)) return;
    if (takes_ticket(access)) {
      leave(access.target, epoch.lock_type);
      grant_wanted();
    }
  }
  set_done(access);
}

void Epochs::set_done(Access& access) {
  access.state = Access::State::done;
  by_id_.erase(access.id);
  --access.epoch.accesses_left;
  epochs_changed_ = true;
}

// Messages.

void Epochs::send(Rank to, const NoticeMessage& notice) {
  if (to == self_)
    to_self_.push_back(notice);
  else
    host_.send(to, notice);
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
    case Notice::lock:
      wanted_locks_.push_back(
          {take_ticket(self_), static_cast<LockType>(notice.value), from, notice.id});
      grant_wanted();
      break;
    case Notice::unlock:
      leave(self_, notice.type);
      send(from, {.notice = Notice::unlocked, .id = notice.id});
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
  if (notice.notice == Notice::unlocked) {
    set_done(access);
    return;
  }
  if (notice.notice == Notice::granted)
    access.granted = true;
  else
    access.seen_age = std::max(access.seen_age, notice.value);
  look_at(access);
}

/// Tickets are served in their order: behind one that is not, none is.
void Epochs::grant_wanted() {
  while (!wanted_locks_.empty()) {
    const WantedLock wanted = wanted_locks_.front();
    if (!try_enter(self_, wanted.ticket, wanted.type)) return;
    wanted_locks_.pop_front();
    send(wanted.origin, {.notice = Notice::granted, .id = wanted.id});
  }
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
    if (!epochs_[i]->active && !is_blocked(i)) activate(*epochs_[i]);
  }
  for (std::size_t i = 0; i < epochs_.size();) {
    if (!has_ended(*epochs_[i])) {
      ++i;
      continue;
    }
    happen(epochs_[i]->on_end);
    epochs_.erase(epochs_.begin() + static_cast<std::ptrdiff_t>(i));
    epochs_changed_ = true;  // others may become active
  }
  return epochs_changed_ || !to_look_at_.empty() || !to_self_.empty();
}

bool Epochs::is_blocked(std::size_t index) const noexcept {
  const Epoch& later = *epochs_[index];
  return std::any_of(epochs_.begin(), epochs_.begin() + static_cast<std::ptrdiff_t>(index),
                     [&](const auto& earlier) {
                       return earlier->closed && earlier->closed_at < later.opened_at &&
                              !may_pass(*earlier, later);
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
  for (auto& [target, access] : epoch.accesses) look_at(*access);
  for (const Rank other : epoch.group) {
    if (is_exposure(epoch)) {
      epoch.awaited.push_back(++peers_[other].exposures);
      send(other, {.notice = Notice::post});
    } else if (!epoch.accesses.contains(other)) {
      static_cast<void>(make_access(epoch, other));
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

bool Epochs::in_use() const noexcept {
  return std::ranges::any_of(epochs_, [this](const auto& each) {
    return each.get() != fence_ || !each->accesses.empty();
  });
}

}  // namespace overlap::newrma
