// The watch on the event loop's descriptors: two epoll sets and a timer.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/event_watch.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

namespace overlap {

bool EventWatch::open() noexcept {
  bell_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  readable_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  writable_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  return bell_ && readable_ && writable_;
}

/// A descriptor that was closed has left the sets by itself; one that is there already is refused.
void EventWatch::add(int fd) noexcept {
  epoll_event reading{.events = EPOLLIN, .data = {.fd = fd}};
  epoll_event writing{.events = EPOLLOUT | EPOLLET, .data = {.fd = fd}};
  epoll_ctl(readable_.get(), EPOLL_CTL_ADD, fd, &reading);
  epoll_ctl(writable_.get(), EPOLL_CTL_ADD, fd, &writing);
}

/// Events come and go with every full socket, descriptors with connections only.
void EventWatch::sync_changed() noexcept try {
  list_descriptors(found_);
  events_ = count_events();
  if (found_ == known_) return;
  for (const int fd : found_) add(fd);
  std::swap(found_, known_);
} catch (const std::bad_alloc&) {
  events_ = 0;  // tried again
}

bool EventWatch::is_readable() const noexcept {
  pollfd set{.fd = readable_.get(), .events = POLLIN, .revents = 0};
  return poll(&set, 1, 0) > 0;
}

bool EventWatch::sleep(Sleep sleep) noexcept {
  pollfd sets[] = {
      {bell_.get(), POLLIN, 0}, {readable_.get(), POLLIN, 0}, {writable_.get(), POLLIN, 0}};
  const nfds_t count = sleep.until == Sleep::Until::arrival ? std::size(sets) : 1;
  const timespec nap{0, static_cast<long>(sleep.nap_ns)};
  if (ppoll(sets, count, sleep.until == Sleep::Until::time ? &nap : nullptr, nullptr) <= 0) {
    return false;
  }
  if (sets[2].revents != 0) {
    // The edges are taken out here, before the turn that serves them: one that comes during the
    // turn stays.
    epoll_event edges[64];
    while (epoll_wait(writable_.get(), edges, std::size(edges), 0) == std::size(edges)) {}
  }
  if (sets[0].revents == 0) return false;
  std::uint64_t rings = 0;
  return read(bell_.get(), &rings, sizeof rings) == sizeof rings;
}

void EventWatch::ring(std::uint32_t delay_ns) noexcept {
  // Not zero, which would be never.
  const itimerspec once{.it_interval = {}, .it_value = {0, static_cast<long>(delay_ns) + 1}};
  timerfd_settime(bell_.get(), 0, &once, nullptr);
}

}  // namespace overlap
