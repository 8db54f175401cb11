// Tasks that have succeeded.
// SPDX-License-Identifier: BSD-3-Clause
#include "delivery.hpp"

namespace overlap::fabric::soft {

void Delivery::deliver(Pair& pair, Task& task) {
  if (task.takes_receive()) queues_.report_receive(*pair.peer, task, CompletionStatus::success);
  task.done = true;
  task.done_at = schedule_.now() + pair.wire.latency_ns;
  if (task.request().signalled || pair.failing)
    retirement_.arm(pair);  // what has failed may stand behind it
}

void Delivery::answer(Pair& pair, Task& task) {
  task.done = true;
  task.done_at = schedule_.now();
  --pair.outstanding_reads;
  raise(pair.reads_ended, steps_);
  retirement_.arm(pair);
}

}  // namespace overlap::fabric::soft
