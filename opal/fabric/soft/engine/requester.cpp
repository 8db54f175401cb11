// From the send queue onto the wire.
// SPDX-License-Identifier: BSD-3-Clause
#include "requester.hpp"

#include <algorithm>

namespace overlap::fabric::soft {
namespace {

/// Bytes of a request besides its header.
[[nodiscard]] std::uint64_t wire_bytes(const Task& task) noexcept {
  if (task.request().opcode == Opcode::read) return 0;
  return task.is_atomic() ? 2 * sizeof(std::uint64_t) : task.total_bytes;
}

}  // namespace

void Requester::fetch(Pair& pair, Time now) {
  Submission submission;
  while ((!pair.managed || pair.end() < pair.enabled_end) && host_.fetch(pair, submission)) {
    Task& task = pair.tasks.emplace_back();
    task.submission = submission;
    // A request that was posted while the device slept starts when it was posted, but never before
    // what has happened already.
    task.submission.posted = std::clamp(submission.posted, std::min(schedule_.now(), now), now);
    if (submission.request.inline_data) {
      task.total_bytes = submission.inline_bytes;
    } else {
      for (std::size_t i = 0; i < submission.request.gather_count; ++i)
        task.total_bytes += submission.request.gather[i].bytes;
    }
  }
}

void Requester::begin(Pair& pair) {
  while (pair.state == PairState::established && !pair.failing && pair.started < pair.end()) {
    Task& task = pair.task(pair.started);
    if (!may_start(pair, task)) return;
    if (task.request().opcode == Opcode::wait) {
      if (!wait_is_over(pair, task)) return;
      ++pair.started;
      task.done = true;
      task.done_at = schedule_.now();
      retirement_.arm(pair);
      continue;
    }
    const std::uint64_t number = pair.started++;
    if (const CompletionStatus fault = access_.check_local(pair, task);
        fault != CompletionStatus::success) {
      failures_.fail_task(pair, task, fault, schedule_.now(), nullptr);
      return;
    }
    if (task.is_read()) ++pair.outstanding_reads;
    lanes_.send_request(pair, number, wire_bytes(task));
  }
}

bool Requester::may_start(Pair& pair, const Task& task) {
  if (pair.out.flow.active() || pair.start_waiter.on != nullptr) return false;
  if (pair.faults.stalled) {
    wait(pair.start_waiter, pair.resumed);
    return false;
  }
  const bool fence_closed = task.request().fenced && pair.outstanding_reads > 0;
  const bool too_deep = task.is_read() && pair.outstanding_reads >= read_depth;
  if (fence_closed || too_deep) {
    wait(pair.start_waiter, pair.reads_ended);
    return false;
  }
  if (task.submission.posted > schedule_.now()) {
    schedule_.set_hidden(pair.start_timer, task.submission.posted);
    return false;
  }
  return true;
}

/// A wait in the send queue itself. Its queue is looked up each time: it may have gone.
bool Requester::wait_is_over(Pair& pair, Task& task) {
  if (task.charged) return !pair.start_timer.armed();
  Completions* queue = host_.find_counting(*pair.client, task.submission.wait_number);
  if (queue != nullptr && has_counted(*queue, task.submission.wait_index)) {
    task.charged = true;
    if (pair.client->task_ns == 0) return true;
    schedule_.set_hidden(pair.start_timer, schedule_.now() + pair.client->task_ns);
  } else if (queue == nullptr || queue->broken != CompletionStatus::success) {
    ++pair.started;
    const CompletionStatus status = queue == nullptr ? CompletionStatus::flushed : queue->broken;
    failures_.fail_task(pair, task, status, schedule_.now(), nullptr);
  } else {
    wait(pair.start_waiter, queue->moved);
  }
  return false;
}

}  // namespace overlap::fabric::soft
