// How a thread that sleeps learns of solicited messages and failures: the device's completion
// channel.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>

#include <vector>

#include "failure.hpp"

namespace overlap::fabric::verbs {

using CompletionChannel = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;

/// One channel for all completion queues of a device. Goes after them.
///
/// @thread  the device's; any thread may sleep on descriptor()
class Arrivals {
 public:
  /// @param channel  nullptr: the device has none to give
  explicit Arrivals(CompletionChannel channel) noexcept;

  /// @returns  -1: there is no channel
  [[nodiscard]] int descriptor() const noexcept { return channel_ ? channel_->fd : -1; }
  /// For a completion queue that is being made; nullptr: it has none.
  [[nodiscard]] ibv_comp_channel* channel() const noexcept { return channel_.get(); }

  /// Of a queue that was made with channel(). May throw std::bad_alloc.
  void add(ibv_cq& queue) { queues_.push_back(&queue); }
  /// Before the queue is destroyed.
  void remove(const ibv_cq& queue) noexcept { std::erase(queues_, &queue); }

  /// As Device::arm_arrivals.
  void arm() noexcept;

 private:
  void take_events() noexcept;

  CompletionChannel channel_;  ///< non-blocking
  std::vector<ibv_cq*> queues_;
};

}  // namespace overlap::fabric::verbs
