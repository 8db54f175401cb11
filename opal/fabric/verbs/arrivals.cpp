// The completion channel of a device, and the channels of its events.
// SPDX-License-Identifier: BSD-3-Clause
#include "arrivals.hpp"

#include <fcntl.h>
#include <sys/epoll.h>

#include <algorithm>
#include <iterator>
#include <utility>

namespace overlap::fabric::verbs {
namespace {

[[nodiscard]] bool set_up(int descriptor) noexcept {
  const int flags = fcntl(descriptor, F_GETFL);
  return flags >= 0 && fcntl(descriptor, F_SETFL, flags | O_NONBLOCK) == 0 &&
         fcntl(descriptor, F_SETFD, FD_CLOEXEC) == 0;
}

[[nodiscard]] bool watch(int all, int descriptor, std::uint32_t when) noexcept {
  epoll_event event{.events = when, .data = {.fd = descriptor}};
  return epoll_ctl(all, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

}  // namespace

Arrivals::Arrivals(CompletionChannel channel, std::span<const int> events) noexcept
    : channel_(std::move(channel)) {
  if (channel_ != nullptr && !open(events)) channel_.reset();
}

bool Arrivals::open(std::span<const int> events) noexcept {
  all_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  return all_ && set_up(all_.get()) && set_up(channel_->fd) &&
         // Edges alone: the channel of a device that is removed can be read for ever, without an
         // event to take. The others are read elsewhere, perhaps later.
         watch(all_.get(), channel_->fd, EPOLLIN | EPOLLET) &&
         std::ranges::all_of(
             events, [this](int each) { return watch(all_.get(), each, EPOLLIN | EPOLLET); });
}

void Arrivals::add(ibv_cq& queue) {
  queues_.push_back(&queue);
  if (has_armed_) (void)ibv_req_notify_cq(&queue, 1);
}

void Arrivals::arm() noexcept {
  if (channel_ == nullptr) return;
  has_armed_ = true;
  take_events();
  // After the events were taken: one that a new request makes stays. A queue that is armed already
  // stays so.
  for (ibv_cq* queue : queues_) (void)ibv_req_notify_cq(queue, 1);
}

/// Each is acknowledged at once: ibv_destroy_cq waits for those that are not, and only for those
/// that somebody has taken.
void Arrivals::take_events() noexcept {
  // Edges first: an event that comes after they were taken makes another one.
  epoll_event edges[4];
  while (epoll_wait(all_.get(), edges, std::size(edges), 0) == std::ssize(edges)) {}
  ibv_cq* queue = nullptr;
  void* context = nullptr;
  while (ibv_get_cq_event(channel_.get(), &queue, &context) == 0) ibv_ack_cq_events(queue, 1);
}

}  // namespace overlap::fabric::verbs
