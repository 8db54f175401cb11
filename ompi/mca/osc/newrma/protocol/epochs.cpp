// The epoch machine: calls that open and close, operations.
// SPDX-License-Identifier: BSD-3-Clause
#include "epochs.hpp"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace overlap::newrma {
namespace {

std::uint32_t rounds_of(Rank count) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(static_cast<std::uint32_t>(count) - 1));
}

}  // namespace

Epochs::Epochs(Host& host, ProcessLocks& locks, Rank self, Rank count, Reorder reorder)
    : host_(host),
      self_(self),
      count_(count),
      reorder_(reorder),
      locks_of_all_(locks),
      fence_arrivals_(rounds_of(count)) {}

/// One that ends with locks is of a program that ends.
Epochs::~Epochs() {
  locks_of_all_.held -= held_;
  locks_of_all_.ahead -= ahead_;
}

// Opening and closing.

Epoch& Epochs::open(EpochKind kind) {
  last_access_ = nullptr;
  auto made = spare_ != nullptr ? std::move(spare_) : std::make_unique<Epoch>();
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
  // Its end does not wait for the program, which is ahead of it until it is there all the same.
  if (takes_locks(*epoch)) count_held(-std::ssize(epoch->accesses));
  for (auto& [target, access] : epoch->accesses) look_at(access);
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

bool Epochs::fence(Event* ended, bool begin_next, bool no_precede) {
  if (has_access_epoch() || exposure_ != nullptr) return false;
  if (fence_ == nullptr) fence_ = &open(EpochKind::fence);
  fence_->ends_access = fence_ends_epoch(no_precede);
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
  settle();
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

bool Epochs::lock(LockType type, Rank target, bool no_check, Event* granted, bool returns_early,
                  Caller caller) {
  if (!no_check && try_lock(type, target)) {
    happen_now(granted);
    return true;
  }
  settle();
  if (access_ != nullptr || lock_all_ != nullptr || fence_in_use() || locks_.contains(target))
    return false;
  drop_idle_fence();
  Epoch& epoch = open(EpochKind::lock);
  epoch.lock_type = type;
  epoch.no_check = no_check;
  epoch.returns_early = returns_early;
  locks_.emplace(target, &epoch);
  // Who holds others waits behind nobody who may wait for one of these.
  const bool is_guest = type == LockType::shared && locks_of_all_.held != 0;
  Access& access = make_access(epoch, target, is_guest ? LockType::guest : type);
  access.in_turn = true;
  access.caller = caller;
  if (granted != nullptr) ++granted->pending;
  access.on_grant = granted;
  run();
  return true;
}

bool Epochs::unlock(Rank target, Event* ended) {
  if (try_unlock(target)) {
    happen_now(ended);
    return true;
  }
  const auto found = locks_.find(target);
  if (found == locks_.end()) return false;
  Epoch* epoch = found->second;
  locks_.erase(found);
  close(epoch, ended);
  run();
  return true;
}

bool Epochs::lock_all(bool no_check, std::span<const Rank> now, Event* granted, bool waits) {
  if (!no_check && try_lock_all(now)) {
    entered_.returns_early = waits;
    happen_now(granted);
    return true;
  }
  if (has_access_epoch() || fence_in_use()) return false;
  drop_idle_fence();
  lock_all_ = &open(EpochKind::lock_all);
  lock_all_->no_check = no_check;
  lock_all_->returns_early = waits;
  if (granted != nullptr) ++granted->pending;  // not before all are counted
  const bool is_guest = !waits || locks_of_all_.held != 0;
  for (const Rank target : now) {
    Access& access = make_access(*lock_all_, target, is_guest ? LockType::guest : LockType::shared);
    access.in_turn = waits;
    if (granted != nullptr) ++granted->pending;
    access.on_grant = granted;
  }
  happen(granted);
  run();
  return true;
}

bool Epochs::unlock_all(Event* ended) {
  if (try_unlock_all()) {
    happen_now(ended);
    return true;
  }
  if (lock_all_ == nullptr) return false;
  close(lock_all_, ended);
  run();
  return true;
}

void Epochs::flush_access(Access& access, bool local, Event& done) {
  if (!local && std::exchange(access.asked_ahead, false)) ahead_pause_ = ahead_left_ = 0;
  // Nothing to cover: the lock need not be waited for.
  if (access.first == nullptr && (local || access.written_age <= access.seen_age)) return;
  ++done.pending;
  access.flushes.push_back({&done, age_, local});
  look_at(access);
}

bool Epochs::flush(Rank target, bool local, Event& done) {
  if (has_entered(target) || (entered_.held && entered_.kind == EpochKind::lock_all)) {
    happen_now(&done);
    return true;
  }
  Epoch* epoch = lock_all_;
  if (const auto found = locks_.find(target); found != locks_.end()) epoch = found->second;
  if (epoch == nullptr) return false;
  ++done.pending;  // not before it is counted
  if (const auto found = epoch->accesses.find(target); found != epoch->accesses.end())
    flush_access(found->second, local, done);
  happen(&done);
  run();
  return true;
}

bool Epochs::flush_all(bool local, Event& done) {
  if (entered_.held) {
    happen_now(&done);
    return true;
  }
  if (!in_passive_epoch()) return false;
  ++done.pending;  // not before all are counted
  if (lock_all_ != nullptr) {
    for (auto& [target, access] : lock_all_->accesses) flush_access(access, local, done);
  }
  for (auto& [target, epoch] : locks_) flush_access(epoch->accesses.at(target), local, done);
  happen(&done);
  run();
  return true;
}

// Operations.

Access* Epochs::find_access(Rank target) {
  settle();
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
  if (found != epoch->accesses.end()) return &found->second;
  // Of a lock of all: it holds others.
  Access& made = make_access(*epoch, target, LockType::guest);
  run();
  return &made;
}

Access& Epochs::make_access(Epoch& epoch, Rank target, LockType type) {
  Access& access =
      epoch.accesses.try_emplace(target, epoch, target, next_id_++, type).first->second;
  if (takes_locks(epoch)) {
    access.lock = host_.lock_of(target);
    count_held(1);
  }
  ++epoch.accesses_left;
  if (epoch.returns_early) count_ahead(1);  // until it is granted
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
  drop_unasked(access);
  if (operation.writes) note_asked_in_vain(access);
  if (access.waiting == nullptr) access.waiting = &operation;
  look_at(access);
  run();
}

void Epochs::operation_done(Operation& operation) {
  Access& access = *operation.access;
  (operation.previous != nullptr ? operation.previous->next : access.first) = operation.next;
  (operation.next != nullptr ? operation.next->previous : access.last) = operation.previous;
  note_unasked(access);
  if (access.epoch.closed || !access.flushes.empty()) {
    look_at(access);
    run();
  }
}

}  // namespace overlap::newrma
