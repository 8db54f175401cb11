// What clients see of finished work: completion queue entries, and queues that lost one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "objects.hpp"

namespace overlap::fabric::soft {

/// The only writer of completion queues.
class CompletionQueues {
 public:
  explicit CompletionQueues(Host& host) noexcept : host_(host) {}

  /// Report a send queue's task. Success is reported only where the poster asked for it.
  void report(Pair& pair, const Task& task, CompletionStatus status);
  /// Report the receive entry that a task holds.
  void report_receive(Pair& receiver, Task& task, CompletionStatus status);

  /// @returns  true once after a queue was full: its queue pairs are still to be broken
  [[nodiscard]] bool take_overrun() noexcept { return std::exchange(overrun_, false); }
  [[nodiscard]] bool has_overrun() const noexcept { return overrun_; }

 private:
  void push(Pair& pair, const Completion& completion, std::uint32_t position, bool solicited);

  Host& host_;
  bool overrun_ = false;
};

}  // namespace overlap::fabric::soft
