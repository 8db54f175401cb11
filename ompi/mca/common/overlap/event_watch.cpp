// The watch on the event loop's descriptors: two epoll sets and a timer.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/event_watch.hpp"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

namespace overlap {
namespace {

/// What it has reported before is forgotten.
void set(const Descriptor& timer, std::uint32_t delay_ns) noexcept {
  // Not zero, which would be never.
  const itimerspec once{.it_interval = {}, .it_value = {0, static_cast<long>(delay_ns) + 1}};
  timerfd_settime(timer.get(), 0, &once, nullptr);
}

}  // namespace

bool EventWatch::open(node::Bell* neighbours) noexcept {
  neighbours_ = neighbours;
  bell_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  nap_ = Descriptor(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  return bell_ && nap_ && open_sets();
}

/// New, empty sets. @returns  false: the kernel has none, and nothing has changed
bool EventWatch::open_sets() noexcept {
  Descriptor readable(epoll_create1(EPOLL_CLOEXEC));
  Descriptor writable(epoll_create1(EPOLL_CLOEXEC));
  if (!readable || !writable) return false;
  readable_ = std::move(readable);
  writable_ = std::move(writable);
  return true;
}

/// @returns  whether it was not there
bool EventWatch::add(const WatchedDescriptor& each) noexcept {
  epoll_event reading{.events = EPOLLIN, .data = {.fd = each.fd}};
  epoll_event writing{.events = EPOLLOUT | EPOLLET, .data = {.fd = each.fd}};
  if (each.once) {
    // Perhaps an MPI thread has to read it: it wakes once and is not seen as readable.
    writing.events = EPOLLIN | EPOLLET;
    return epoll_ctl(writable_.get(), EPOLL_CTL_ADD, each.fd, &writing) == 0;
  }
  if (epoll_ctl(readable_.get(), EPOLL_CTL_ADD, each.fd, &reading) != 0) return false;
  if (epoll_ctl(writable_.get(), EPOLL_CTL_ADD, each.fd, &writing) != 0 && errno == EEXIST) {
    epoll_ctl(writable_.get(), EPOLL_CTL_MOD, each.fd, &writing);
  }
  return true;
}

bool EventWatch::knows(int fd) const noexcept {
  const auto known = std::ranges::lower_bound(known_, fd, {}, &WatchedDescriptor::fd);
  return known != known_.end() && known->fd == fd && !known->once;
}

/// Add what is not there. @returns  false: a known descriptor is another one, or has gone
bool EventWatch::try_add_found() noexcept {
  const auto gone = [this](const WatchedDescriptor& each) {
    const auto found = std::ranges::lower_bound(found_, each.fd, {}, &WatchedDescriptor::fd);
    return found == found_.end() || found->fd != each.fd;
  };
  if (std::ranges::any_of(known_, gone)) return false;
  return std::ranges::none_of(
      found_, [this](const WatchedDescriptor& each) { return add(each) && knows(each.fd); });
}

void EventWatch::sync_or_throw(bool turned_elsewhere) {
  is_due_ = list_descriptors(found_);
  events_ = count_events();
  if (found_ == known_ && !turned_elsewhere) return;
  if (!try_add_found()) {
    if (!open_sets()) {
      known_.clear();  // tried again
      return;
    }
    for (const WatchedDescriptor& each : found_) add(each);
  }
  std::swap(found_, known_);
}

void EventWatch::sync(bool turned_elsewhere) noexcept try {
  sync_or_throw(turned_elsewhere);
} catch (const std::bad_alloc&) {
  events_ = 0;  // tried again
}

bool EventWatch::has_other_descriptors() noexcept try {
  const bool is_due = list_descriptors(found_);
  return is_due || found_ != known_;
} catch (const std::bad_alloc&) {
  return true;
}

bool EventWatch::is_readable() const noexcept {
  pollfd set{.fd = readable_.get(), .events = POLLIN, .revents = 0};
  return poll(&set, 1, 0) > 0;
}

bool EventWatch::sleep(Sleep sleep, int also, int network) noexcept {
  const auto neighbours = neighbours_ != nullptr ? neighbours_->descriptors() : std::array{-1, -1};
  const bool naps = sleep.until == Sleep::Until::time;
  if (naps) set_nap(sleep.nap_ns);
  pollfd sets[] = {{bell_.get(), POLLIN, 0},     {naps ? nap_.get() : readable_.get(), POLLIN, 0},
                   {writable_.get(), POLLIN, 0}, {neighbours[0], POLLIN, 0},
                   {neighbours[1], POLLIN, 0},   {also, POLLIN, 0},
                   {network, POLLIN, 0}};
  woken_by_sender_ = also_readable_ = false;
  const nfds_t count = sleep.until == Sleep::Until::arrival ? std::size(sets) : naps ? 2 : 1;
  if (poll(sets, count, -1) <= 0) return false;
  if (sets[2].revents != 0) {
    // The edges are taken out here, before the turn that serves them: one that comes during the
    // turn stays.
    epoll_event edges[64];
    while (epoll_wait(writable_.get(), edges, std::size(edges), 0) == std::size(edges)) {}
  }
  also_readable_ = sets[5].revents != 0;
  if ((sets[3].revents | sets[4].revents) != 0) woken_by_sender_ = neighbours_->silence();
  if (sets[6].revents != 0) woken_by_sender_ = true;
  if (sets[0].revents == 0) return false;
  std::uint64_t rings = 0;
  return read(bell_.get(), &rings, sizeof rings) == sizeof rings;
}

void EventWatch::ring(std::uint32_t delay_ns) noexcept { set(bell_, delay_ns); }

void EventWatch::set_nap(std::uint32_t delay_ns) noexcept { set(nap_, delay_ns); }

}  // namespace overlap
