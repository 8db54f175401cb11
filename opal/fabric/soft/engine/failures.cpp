// Errors of tasks, and the end of queue pairs.
// SPDX-License-Identifier: BSD-3-Clause
#include "failures.hpp"

namespace overlap::fabric::soft {

void Failures::fail_task(Pair& pair, Task& task, CompletionStatus status, Time at, Lane* lane) {
  task.done = true;
  task.status = status;
  task.done_at = at;
  pair.failing = true;
  if (lane != nullptr) lanes_.halt(pair.out);
  TimerHeap::clear(pair.again_timer);
  leave(pair.arrive_waiter);
  if (lane == &pair.back) lanes_.halt(pair.back);
  retirement_.arm(pair);
}

void Failures::refuse_task(Pair& pair, Task& task, CompletionStatus status) {
  fail_task(pair, task, status, schedule_.now() + pair.wire.latency_ns, &pair.out);
}

void Failures::fail_receive(Pair& pair, Task& task, CompletionStatus status) {
  queues_.report_receive(*pair.peer, task, status);
  refuse_task(pair, task, CompletionStatus::remote_error);
}

void Failures::give_up(Pair& pair) {
  for (std::uint64_t number = pair.retired; number < pair.started; ++number) {
    Task& task = pair.task(number);
    if (task.done) continue;
    lanes_.halt(pair.back);
    return fail_task(pair, task, CompletionStatus::retry_exceeded, schedule_.now(), &pair.out);
  }
}

void Failures::break_pair(Pair& pair, const std::string& why) {
  Pair* peer = separate(pair);
  flush(pair);
  if (peer == nullptr || peer->state != PairState::established) return;
  flush(*peer);
  tell(host_, *peer, Event::Kind::peer_lost, why);
}

/// End the connection of two queue pairs. Entries that unfinished messages had taken from the
/// receive queues belong to their users again.
/// @returns  the other one, nullptr: there is none
Pair* Failures::separate(Pair& pair) {
  Pair* peer = pair.peer;
  if (peer == nullptr) return nullptr;
  return_receives(pair);
  return_receives(*peer);
  pair.peer = nullptr;
  peer->peer = nullptr;
  return peer;
}

void Failures::return_receives(Pair& sender) {
  for (Task& task : sender.tasks) {
    if (task.holds_receive) queues_.report_receive(*sender.peer, task, CompletionStatus::flushed);
  }
}

void Failures::flush(Pair& pair) {
  pair.state = PairState::failed;
  lanes_.halt(pair.out);
  lanes_.halt(pair.back);
  leave(pair.start_waiter);
  leave(pair.arrive_waiter);
  for (Timer* timer :
       {&pair.start_timer, &pair.retire_timer, &pair.again_timer, &pair.give_up_timer})
    TimerHeap::clear(*timer);
  bool in_order = true;
  for (const Task& task : pair.tasks) {
    const bool known = in_order && task.done;
    queues_.report(pair, task, known ? task.status : CompletionStatus::flushed);
    in_order = known && task.status == CompletionStatus::success;
  }
  pair.retired += pair.tasks.size();
  pair.tasks.clear();
  pair.started = pair.retired;
  Task behind;
  while (host_.fetch(pair, behind.submission))
    queues_.report(pair, behind, CompletionStatus::flushed);
  // Its receive entries are never used: who waits for them need not wait.
  queues_.break_counting(*pair.receive_completions, CompletionStatus::flushed);
}

}  // namespace overlap::fabric::soft
