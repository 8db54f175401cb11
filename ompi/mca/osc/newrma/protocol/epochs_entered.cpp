// The epoch machine: locks that are free while there is no other epoch.
// SPDX-License-Identifier: BSD-3-Clause
#include "epochs.hpp"

#include <iterator>

namespace overlap::newrma {

/// @returns  false: somebody is in the way, or another epoch
bool Epochs::try_enter_all(EpochKind kind, LockType type, std::span<const Rank> targets) {
  if (!epochs_.empty() || entered_.held || running_) return false;
  // Who enters some in vain takes their cache lines from others.
  if (!std::ranges::all_of(targets, [&](Rank each) { return may_enter(each, type); })) return false;
  entered_.kind = kind;
  entered_.type = type;
  entered_.targets.assign(targets.begin(), targets.end());
  std::size_t count = 0;
  run_alone([&] {
    while (count < targets.size() && try_enter_now(targets[count], type)) ++count;
    if (count != targets.size()) leave_first(count);
  });
  if (count == targets.size()) set_entered();
  run();
  return entered_.held;
}

void Epochs::set_entered() noexcept {
  entered_.held = true;
  count_held(std::ssize(entered_.targets));
  if (entered_.targets.empty()) return;
  entered_.first = entered_.targets.front();
  const auto span = static_cast<std::size_t>(entered_.targets.back() - entered_.first) + 1;
  if (span == entered_.targets.size()) entered_.neighbours = static_cast<std::uint32_t>(span);
}

/// @returns  false: there are none
bool Epochs::drop_entered() noexcept {
  if (!std::exchange(entered_.held, false)) return false;
  entered_.neighbours = 0;
  count_held(-std::ssize(entered_.targets));
  return true;
}

bool Epochs::may_enter(Rank target, LockType type) {
  const WindowLock* const lock = host_.lock_of(target);
  return lock != nullptr && lock->may_enter(type);
}

bool Epochs::try_enter_now(Rank target, LockType type) {
  WindowLock* const lock = host_.lock_of(target);
  const std::optional<WindowLock::Ticket> ticket = lock->try_take(type);
  if (!ticket) return false;
  if (try_enter(*lock, target, *ticket, type)) return true;
  lock->give_up();
  if (lock->is_in_use()) host_.passed_turn(target);
  return false;
}

void Epochs::leave_first(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const Rank target = entered_.targets[i];
    leave(*host_.lock_of(target), target, entered_.type);
  }
  grant_wanted();
}

bool Epochs::try_lock(LockType type, Rank target) {
  return try_enter_all(EpochKind::lock, type, {&target, 1});
}

bool Epochs::try_lock_all(std::span<const Rank> now) {
  if (!try_enter_all(EpochKind::lock_all, LockType::shared, now)) return false;
  entered_.returns_early = true;
  return true;
}

bool Epochs::try_unlock(Rank target) {
  if (!entered_.held || entered_.kind != EpochKind::lock || entered_.targets[0] != target)
    return false;
  leave_entered();
  return true;
}

bool Epochs::try_unlock_all() {
  if (!entered_.held || entered_.kind != EpochKind::lock_all) return false;
  leave_entered();
  return true;
}

void Epochs::leave_entered() {
  static_cast<void>(drop_entered());
  run_alone([this] { leave_first(entered_.targets.size()); });
  run();
}

/// More is asked of them than to be left: they get their epoch, as if it had been there before.
void Epochs::settle() {
  if (!drop_entered()) return;
  run_alone([this] {
    Epoch& epoch = open(entered_.kind);
    epoch.lock_type = entered_.type;
    epoch.active = true;
    for (const Rank target : entered_.targets) {
      Access& access = make_access(epoch, target, entered_.type);
      access.granted = true;
      access.state = Access::State::open;
      if (entered_.kind == EpochKind::lock) locks_.emplace(target, &epoch);
    }
    if (entered_.kind != EpochKind::lock_all) return;
    epoch.returns_early = entered_.returns_early;  // without those that it asks for later
    lock_all_ = &epoch;
  });
  run();
}

}  // namespace overlap::newrma
