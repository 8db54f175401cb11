// The completion channel of a device.
// SPDX-License-Identifier: BSD-3-Clause
#include "arrivals.hpp"

#include <fcntl.h>

#include <utility>

namespace overlap::fabric::verbs {
namespace {

[[nodiscard]] bool set_up(int descriptor) noexcept {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
}

}  // namespace

Arrivals::Arrivals(CompletionChannel channel) noexcept : channel_(std::move(channel)) {
  if (channel_ != nullptr && !set_up(channel_->fd)) channel_.reset();
}

void Arrivals::arm() noexcept {
  if (channel_ == nullptr) return;
  take_events();
  // After the events were taken: one that a new request makes stays. A queue that is armed already
  // stays so.
  for (ibv_cq* queue : queues_) (void)ibv_req_notify_cq(queue, 1);
}

/// Each is acknowledged at once: ibv_destroy_cq waits for those that are not, and only for those
/// that somebody has taken.
void Arrivals::take_events() noexcept {
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

}  // namespace overlap::fabric::verbs
