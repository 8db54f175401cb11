// Steps of queue pairs and management queues that stand still until a condition is raised.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace overlap::fabric::soft {

struct Condition;
struct Manager;
struct Pair;

/// Which step of a queue pair waits.
enum class Stage : std::uint8_t {
  start,   ///< its next task may not start yet
  arrive,  ///< what has arrived may not be executed yet
};

/// A step that stands still, of a queue pair or of a management queue. In at most one condition's
/// list.
struct Waiter {
  Pair* pair = nullptr;
  Stage stage = Stage::start;  ///< of the pair
  Manager* manager = nullptr;
  Condition* on = nullptr;
};

/// Something that tasks of the same or of other queue pairs can wait for. Whoever changes it calls
/// raise(), which takes every waiter's step again; one that still may not go on waits anew.
struct Condition {
  std::vector<Waiter*> waiters;
};

/// Takes the steps that no longer stand still.
class Steps {
 public:
  virtual ~Steps() = default;
  virtual void go_on(Pair& pair, Stage stage) = 0;
  virtual void go_on(Manager& manager) = 0;
};

void wait(Waiter& waiter, Condition& condition);
/// Wait no longer. Harmless for a waiter that does not wait.
void leave(Waiter& waiter) noexcept;
void raise(Condition& condition, Steps& steps);

}  // namespace overlap::fabric::soft
