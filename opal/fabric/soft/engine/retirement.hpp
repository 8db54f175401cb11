// Tasks leave their send queue in order, when their poster may know.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "completion_queues.hpp"
#include "objects.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

class Retirement {
 public:
  Retirement(Schedule& schedule, CompletionQueues& queues) noexcept
      : schedule_(schedule), queues_(queues) {}

  /// See to it that Alarm::retire goes off when the next completion becomes visible.
  void arm(Pair& pair);
  /// Report what has ended and is visible. @returns  the status of the first task when that has
  /// failed: the queue pair must be broken; else success
  [[nodiscard]] CompletionStatus retire(Pair& pair);

 private:
  Schedule& schedule_;
  CompletionQueues& queues_;
};

}  // namespace overlap::fabric::soft
