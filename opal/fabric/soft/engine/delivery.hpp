// The end of a task whose bytes are all there.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "completion_queues.hpp"
#include "objects.hpp"
#include "retirement.hpp"
#include "schedule.hpp"
#include "waiting.hpp"

namespace overlap::fabric::soft {

class Delivery {
 public:
  Delivery(Schedule& schedule, CompletionQueues& queues, Retirement& retirement,
           Steps& steps) noexcept
      : schedule_(schedule), queues_(queues), retirement_(retirement), steps_(steps) {}

  /// All bytes of a send or write are at the responder; its poster knows one latency later.
  void deliver(Pair& pair, Task& task);
  /// The response of a read or atomic is at its poster.
  void answer(Pair& pair, Task& task);

 private:
  Schedule& schedule_;
  CompletionQueues& queues_;
  Retirement& retirement_;
  Steps& steps_;
};

}  // namespace overlap::fabric::soft
