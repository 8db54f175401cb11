// The front of send queues.
// SPDX-License-Identifier: BSD-3-Clause
#include "retirement.hpp"

#include <algorithm>

namespace overlap::fabric::soft {

void Retirement::arm(Pair& pair) {
  if (pair.retire_timer.armed()) return;
  Time at = schedule_.now();
  for (const Task& task : pair.tasks) {
    if (!task.done) return;
    at = std::max(at, task.done_at);  // it is not told before those that were posted before it
    if (!task.request().signalled && task.status == CompletionStatus::success) continue;
    schedule_.set_visible(pair.retire_timer, at);
    return;
  }
}

CompletionStatus Retirement::retire(Pair& pair) {
  while (!pair.tasks.empty()) {
    const Task& task = pair.tasks.front();
    if (!task.done || task.done_at > schedule_.now()) break;
    if (task.status != CompletionStatus::success) return task.status;
    queues_.report(pair, task, CompletionStatus::success);
    pair.tasks.pop_front();
    ++pair.retired;
  }
  arm(pair);
  return CompletionStatus::success;
}

}  // namespace overlap::fabric::soft
