// Completions in order, errors, and what an error does to everything behind it.
#include <algorithm>

#include "engine.hpp"

namespace overlap::fabric::soft {

void Engine::push(Completions& completions, Pair& pair, const Completion& completion,
                  std::uint32_t position) {
  host_.complete(completions, pair, completion, position);
  ++completions.count;
  raise(completions.counted);
}

void Engine::report(Pair& pair, const Task& task, CompletionStatus status) {
  if (status == CompletionStatus::success && !task.request().signalled) return;
  Completion completion;
  completion.id = task.request().id;
  completion.status = status;
  completion.opcode = task.request().opcode;
  completion.bytes = static_cast<std::uint32_t>(task.total_bytes);
  completion.queue_pair_number = pair.number;
  push(*pair.completions, pair, completion, task.submission.position);
}

/// See to it that retire() runs when the next completion becomes visible.
void Engine::arm_retire(Pair& pair) {
  if (pair.retire_timer.armed()) return;
  Time at = clock_;
  for (const Task& task : pair.tasks) {
    if (!task.done) return;
    at = std::max(at, task.done_at);  // it is not told before those that were posted before it
    if (!task.request().signalled && task.status == CompletionStatus::success) continue;
    visible_timers_.set(pair.retire_timer, at);
    return;
  }
}

void Engine::retire(Pair& pair) {
  while (!pair.tasks.empty()) {
    const Task& task = pair.tasks.front();
    if (!task.done || task.done_at > clock_) break;
    if (task.status != CompletionStatus::success) {
      break_pair(pair, std::string("the peer's queue pair failed: ") + text(task.status));
      return;
    }
    report(pair, task, CompletionStatus::success);
    pair.tasks.pop_front();
    ++pair.retired;
  }
  arm_retire(pair);
}

void Engine::halt(Lane& lane) {
  Pair& pair = *lane.timer.owner;
  wire_.stop(lane.flow, clock_);
  TimerHeap::clear(lane.timer);
  lane.arrivals.clear();
  lane.moving = false;
  std::erase_if(backlog_, [&](const Moving& moving) { return moving.lane == &lane; });
  if (&lane == &pair.back) pair.responses.clear();
}

/// A task cannot be executed. What was posted before it goes on; nothing behind it does.
/// @param lane  where it was found out, nullptr: before it was sent
void Engine::fail_task(Pair& pair, Task& task, CompletionStatus status, Time at, Lane* lane) {
  task.done = true;
  task.status = status;
  task.done_at = at;
  pair.failing = true;
  if (lane != nullptr) halt(pair.out);
  if (lane == &pair.back) halt(pair.back);
  arm_retire(pair);
}

/// The receive entry that a message took does not suit: both ends fail.
void Engine::receive_failed(Pair& pair, Task& task, CompletionStatus status) {
  Pair& peer = *pair.peer;
  Completion completion;
  completion.id = task.receive.id;
  completion.status = status;
  completion.opcode = Opcode::receive;
  completion.queue_pair_number = peer.number;
  push(*peer.completions, peer, completion, 0);
  fail_task(pair, task, CompletionStatus::remote_error, clock_ + pair.wire.latency_ns, &pair.out);
}

/// The first task of the queue has failed.
void Engine::break_pair(Pair& pair, const std::string& why) {
  Pair* peer = pair.peer;
  flush(pair);
  if (peer == nullptr) return;
  pair.peer = nullptr;
  peer->peer = nullptr;
  lose(*peer, why);
}

/// Complete everything that is or will be posted: what had succeeded in order, the error, and the rest as flushed.
void Engine::flush(Pair& pair) {
  pair.state = PairState::failed;
  halt(pair.out);
  halt(pair.back);
  leave(pair.start_waiter);
  leave(pair.arrive_waiter);
  TimerHeap::clear(pair.start_timer);
  TimerHeap::clear(pair.retire_timer);
  bool in_order = true;
  for (const Task& task : pair.tasks) {
    const bool known = in_order && task.done;
    report(pair, task, known ? task.status : CompletionStatus::flushed);
    in_order = known && task.status == CompletionStatus::success;
  }
  pair.retired += pair.tasks.size();
  pair.tasks.clear();
  pair.started = pair.retired;
  Task behind;
  while (host_.fetch(pair, behind.submission)) report(pair, behind, CompletionStatus::flushed);
}

}  // namespace overlap::fabric::soft
