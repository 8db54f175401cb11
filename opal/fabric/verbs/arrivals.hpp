// How a thread that sleeps learns of solicited messages, failures and connections: one descriptor
// for the device's completion channel and the channels of its events.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <infiniband/verbs.h>

#include <span>
#include <vector>

#include "opal/mca/common/overlap/descriptor.hpp"

#include "failure.hpp"

namespace overlap::fabric::verbs {

using CompletionChannel = Handle<ibv_comp_channel, ibv_destroy_comp_channel>;

/// One channel for all completion queues of a device. Goes after them.
///
/// @thread  the device's; any thread may sleep on descriptor()
class Arrivals {
 public:
  /// @param channel  nullptr: the device has none to give
  /// @param events   descriptors that tell of events, read elsewhere; they outlive this
  explicit Arrivals(CompletionChannel channel, std::span<const int> events = {}) noexcept;

  /// @returns  -1: there is no channel
  [[nodiscard]] int descriptor() const noexcept { return channel_ ? all_.get() : -1; }
  /// For a completion queue that is being made; nullptr: it has none.
  [[nodiscard]] ibv_comp_channel* channel() const noexcept { return channel_.get(); }

  /// Of a queue that was made with channel(): armed where the others may be. May throw
  /// std::bad_alloc.
  void add(ibv_cq& queue);
  /// Before the queue is destroyed.
  void remove(const ibv_cq& queue) noexcept { std::erase(queues_, &queue); }

  /// As Device::arm_arrivals.
  void arm() noexcept;

 private:
  [[nodiscard]] bool open(std::span<const int> events) noexcept;
  void take_events() noexcept;

  CompletionChannel channel_;  ///< non-blocking
  Descriptor all_;             ///< epoll: the channel and the events
  std::vector<ibv_cq*> queues_;
  bool has_armed_ = false;
};

}  // namespace overlap::fabric::verbs
