// What an error does to everything behind it, and how a connection ends.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>

#include "completion_queues.hpp"
#include "lanes.hpp"
#include "objects.hpp"
#include "retirement.hpp"

namespace overlap::fabric::soft {

/// Fails tasks, and queue pairs with all that was posted to them.
class Failures {
 public:
  Failures(Host& host, Schedule& schedule, Lanes& lanes, CompletionQueues& queues,
           Retirement& retirement) noexcept
      : host_(host), schedule_(schedule), lanes_(lanes), queues_(queues), retirement_(retirement) {}

  /// A task cannot be executed. What was posted before it goes on; nothing behind it does.
  /// @param at    when its poster may know
  /// @param lane  where it was found out, nullptr: before it was sent
  void fail_task(Pair& pair, Task& task, CompletionStatus status, Time at, Lane* lane);
  /// The responder refuses a task: its poster knows one latency later.
  void refuse_task(Pair& pair, Task& task, CompletionStatus status);
  /// The receive entry that a message took does not suit: both ends fail.
  void fail_receive(Pair& pair, Task& task, CompletionStatus status);
  /// The peer's end has not answered for too long: the oldest request fails.
  void give_up(Pair& pair);

  /// End both ends; the peer is told why.
  void break_pair(Pair& pair, const std::string& why);
  /// Complete everything that is or will be posted: what had succeeded in order, the error, and the
  /// rest as flushed.
  void flush(Pair& pair);

 private:
  [[nodiscard]] Pair* separate(Pair& pair);
  void return_receives(Pair& sender);

  Host& host_;
  Schedule& schedule_;
  Lanes& lanes_;
  CompletionQueues& queues_;
  Retirement& retirement_;
};

}  // namespace overlap::fabric::soft
