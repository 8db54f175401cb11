// Completions as clients read them.
// SPDX-License-Identifier: BSD-3-Clause
#include "completion_queues.hpp"

namespace overlap::fabric::soft {

void CompletionQueues::report(Pair& pair, const Task& task, CompletionStatus status) {
  if (status == CompletionStatus::success && !task.request().signalled) return;
  Completion completion;
  completion.id = task.request().id;
  completion.status = status;
  completion.opcode = task.request().opcode;
  completion.bytes = static_cast<std::uint32_t>(task.total_bytes);
  completion.queue_pair_number = pair.number;
  push(pair, completion, task.submission.position, false);
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
  push(receiver, completion, 0, task.is_plain_send() && request.solicited);
}

void CompletionQueues::push(Pair& pair, const Completion& completion, std::uint32_t position,
                            bool solicited) {
  Completions& completions = *pair.completions;
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
