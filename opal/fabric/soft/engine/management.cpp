// Waits and enables in virtual time.
// SPDX-License-Identifier: BSD-3-Clause
#include "management.hpp"

#include <algorithm>

#include "opal/fabric/management_queue.hpp"

namespace overlap::fabric::soft {

void Management::ring(Manager& manager, Time now) {
  manager.rung_at = now;
  switch (manager.state) {
    case ManagerState::idle: begin_next(manager); return;
    case ManagerState::failed: flush(manager); return;
    case ManagerState::waiting:
    case ManagerState::executing: return;
  }
}

void Management::begin_next(Manager& manager) {
  manager.state = ManagerState::idle;
  if (!host_.fetch(manager, manager.head)) return;
  // As for a work request: it begins when it was posted, but not before what has happened already.
  manager.ready_at = std::max(schedule_.now(), std::min(manager.head.posted, manager.rung_at));
  if (manager.head.kind != Command::Kind::wait) return begin(manager);
  manager.state = ManagerState::waiting;
  manager.queue = host_.find_counting(*manager.client, manager.head.number);
  look(manager);
}

void Management::look(Manager& manager) {
  if (manager.state != ManagerState::waiting) return;
  if (manager.queue == nullptr) return fail(manager, CompletionStatus::flushed);
  if (has_counted(*manager.queue, manager.head.index)) return begin(manager);
  if (manager.queue->broken != CompletionStatus::success)
    return fail(manager, manager.queue->broken);
  wait(manager.waiter, manager.queue->moved);
}

/// Visible, whatever the task: the end of its list may come sooner than one latency after it.
void Management::begin(Manager& manager) {
  manager.state = ManagerState::executing;
  manager.queue = nullptr;
  const bool is_task = manager.head.kind != Command::Kind::nothing;
  const Time at =
      std::max(manager.ready_at, schedule_.now()) + (is_task ? manager.client->task_ns : 0);
  schedule_.set_visible(manager.timer, at);
}

void Management::execute(Manager& manager) {
  bool good = true;
  switch (manager.head.kind) {
    case Command::Kind::wait:
    case Command::Kind::nothing: break;
    case Command::Kind::send_enable: good = enable_sends(manager); break;
    case Command::Kind::receive_enable: good = enable_receives(manager); break;
  }
  if (!good) return fail(manager, CompletionStatus::other_error);
  if (manager.head.signalled) queues_.report_list(manager, manager.head, CompletionStatus::success);
  begin_next(manager);
}

Pair* Management::pair_of(const Manager& manager) {
  Pair* pair = directory_.find_pair(manager.head.number);
  return pair != nullptr && pair->client == manager.client ? pair : nullptr;
}

/// @returns  false: there is no such queue pair
bool Management::enable_sends(const Manager& manager) {
  Pair* pair = pair_of(manager);
  if (pair == nullptr || !pair->managed) return false;
  const auto end = static_cast<std::uint32_t>(pair->enabled_end & EnableIndex::mask);
  pair->enabled_end += EnableIndex::ahead(manager.head.index, end);
  if (pair->state == PairState::failed) {
    failures_.flush(*pair);
  } else if (pair->state == PairState::established) {
    requester_.fetch(*pair, schedule_.now());
    requester_.begin(*pair);
  }
  return true;
}

bool Management::enable_receives(const Manager& manager) {
  Pair* pair = pair_of(manager);
  if (pair == nullptr || pair->receives == nullptr || !pair->receives->managed) return false;
  Receives& receives = *pair->receives;
  const auto end = static_cast<std::uint32_t>(receives.enabled_end & EnableIndex::mask);
  receives.enabled_end += EnableIndex::ahead(manager.head.index, end);
  raise(receives.posted, steps_);
  return true;
}

void Management::fail(Manager& manager, CompletionStatus status) {
  manager.state = ManagerState::failed;
  manager.queue = nullptr;
  leave(manager.waiter);
  // The rest of the list; its end has been posted with it.
  while (!manager.head.signalled && host_.fetch(manager, manager.head)) {}
  queues_.report_list(manager, manager.head, status);
  flush(manager);
}

void Management::flush(Manager& manager) {
  while (host_.fetch(manager, manager.head)) {
    if (manager.head.signalled)
      queues_.report_list(manager, manager.head, CompletionStatus::flushed);
  }
}

void Management::stop(Manager& manager) noexcept {
  leave(manager.waiter);
  TimerHeap::clear(manager.timer);
  manager.state = ManagerState::idle;
}

}  // namespace overlap::fabric::soft
