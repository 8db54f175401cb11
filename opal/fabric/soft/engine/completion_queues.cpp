// Completions as clients read them.
// SPDX-License-Identifier: BSD-3-Clause
#include "completion_queues.hpp"

#include "opal/fabric/management_queue.hpp"

namespace overlap::fabric::soft {

bool has_counted(const Completions& queue, std::uint32_t index) noexcept {
  const auto counted = static_cast<std::uint32_t>(queue.counted & WaitIndex::mask);
  return WaitIndex::ahead(index, counted) == 0;
}

void CompletionQueues::report(Pair& pair, const Task& task, CompletionStatus status) {
  if (status == CompletionStatus::success && !task.request().signalled) return;
  Completion completion;
  completion.id = task.request().id;
  completion.status = status;
  completion.opcode = task.request().opcode;
  completion.bytes = static_cast<std::uint32_t>(task.total_bytes);
  completion.queue_pair_number = pair.number;
  push(*pair.completions, pair, completion, task.submission.position, false);
}

void CompletionQueues::report_receive(Pair& receiver, Task& task, CompletionStatus status) {
  const WorkRequest& request = task.request();
  Completion completion;
  completion.id = task.receive.id;
  completion.status = status;
  completion.opcode = Opcode::receive;
  completion.queue_pair_number = receiver.number;
  if (status == CompletionStatus::success) {
    completion.has_immediate = request.opcode != Opcode::send;
    completion.immediate = request.immediate;
    completion.bytes = static_cast<std::uint32_t>(task.total_bytes);
  }
  task.holds_receive = false;
  push(*receiver.receive_completions, receiver, completion, 0,
       task.is_plain_send() && request.solicited);
}

void CompletionQueues::report_list(Manager& manager, const Command& last, CompletionStatus status) {
  Completion completion;
  completion.id = last.id;
  completion.status = status;
  completion.opcode = Opcode::wait;
  // A lost one is the loss of a client that does not keep to its own queue's entries.
  static_cast<void>(host_.complete(manager, completion, last.position));
  host_.notify(*manager.client);
}

void CompletionQueues::break_counting(Completions& completions, CompletionStatus status) {
  if (!completions.counting || completions.broken != CompletionStatus::success) return;
  completions.broken = status;
  raise(completions.moved, steps_);
}

void CompletionQueues::count(Completions& completions, Pair& pair, const Completion& completion,
                             std::uint32_t position) {
  host_.count(completions, pair, completion.opcode != Opcode::receive, position);
  if (completion.status != CompletionStatus::success)
    return break_counting(completions, completion.status);
  if (completions.broken != CompletionStatus::success) return;
  ++completions.counted;
  raise(completions.moved, steps_);
}

void CompletionQueues::push(Completions& completions, Pair& pair, const Completion& completion,
                            std::uint32_t position, bool solicited) {
  if (completions.counting) return count(completions, pair, completion, position);
  if (completions.overrun) return;
  if (!host_.complete(completions, pair, completion, position)) {
    completions.overrun = true;
    overrun_ = true;
  }
  // After the entry: a thread that is woken polls once.
  if (solicited || completion.status != CompletionStatus::success || completions.overrun)
    host_.notify(*completions.client);
}

}  // namespace overlap::fabric::soft
