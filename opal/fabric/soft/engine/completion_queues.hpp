// What clients see of finished work: completion queue entries, and queues that lost one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <utility>

#include "objects.hpp"
#include "waiting.hpp"

namespace overlap::fabric::soft {

/// Has a counting queue ever counted so far as the index of a wait says?
[[nodiscard]] bool has_counted(const Completions& queue, std::uint32_t index) noexcept;

/// The only writer of completion queues.
class CompletionQueues {
 public:
  CompletionQueues(Host& host, Steps& steps) noexcept : host_(host), steps_(steps) {}

  /// Report a send queue's task. Success is reported only where the poster asked for it.
  void report(Pair& pair, const Task& task, CompletionStatus status);
  /// Report the receive entry that a task holds.
  void report_receive(Pair& receiver, Task& task, CompletionStatus status);

  /// Report the list that ends with `last`.
  void report_list(Manager& manager, const Command& last, CompletionStatus status);
  /// A counting queue will count no more. Harmless for others, and for one that is broken.
  void break_counting(Completions& completions, CompletionStatus status);

  /// @returns  true once after a queue was full: its queue pairs are still to be broken
  [[nodiscard]] bool take_overrun() noexcept { return std::exchange(overrun_, false); }
  [[nodiscard]] bool has_overrun() const noexcept { return overrun_; }

 private:
  void push(Completions& completions, Pair& pair, const Completion& completion,
            std::uint32_t position, bool solicited);
  void count(Completions& completions, Pair& pair, const Completion& completion,
             std::uint32_t position);

  Host& host_;
  Steps& steps_;
  bool overrun_ = false;
};

}  // namespace overlap::fabric::soft
