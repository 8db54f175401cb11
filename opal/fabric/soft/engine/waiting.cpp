// Lists of waiting steps.
// SPDX-License-Identifier: BSD-3-Clause
#include "waiting.hpp"

namespace overlap::fabric::soft {

void wait(Waiter& waiter, Condition& condition) {
  leave(waiter);
  waiter.on = &condition;
  condition.waiters.push_back(&waiter);
}

void leave(Waiter& waiter) noexcept {
  if (waiter.on == nullptr) return;
  std::erase(waiter.on->waiters, &waiter);
  waiter.on = nullptr;
}

void raise(Condition& condition, Steps& steps) {
  if (condition.waiters.empty()) return;
  std::vector<Waiter*> waiters;
  waiters.swap(condition.waiters);
  for (Waiter* waiter : waiters) waiter->on = nullptr;
  for (Waiter* waiter : waiters) {
    if (waiter->manager != nullptr) {
      steps.go_on(*waiter->manager);
    } else {
      steps.go_on(*waiter->pair, waiter->stage);
    }
  }
}

}  // namespace overlap::fabric::soft
