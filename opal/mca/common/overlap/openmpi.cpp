// What of openmpi.hpp exists once per process: the help folder and the event loop.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/openmpi.hpp"

#include <sys/socket.h>

#include <tuple>

namespace overlap {

void add_help_folder() noexcept {
  static const int added = opal_show_help_add_dir(OVERLAP_HELP_FOLDER);
  static_cast<void>(added);
}

int poll_events() noexcept {
  // ONCE as well: without it libevent goes round until nothing is active, and a busy peer keeps us
  // inside.
  opal_event_loop(opal_sync_event_base, OPAL_EVLOOP_ONCE | OPAL_EVLOOP_NONBLOCK);
  return 0;
}

namespace {

/// Is this an event for a connection that has come in and not said yet whose it is? tcp reads once
/// from such a one, and again and again from others.
bool is_for_once(const event* each) noexcept {
  return (event_get_events(each) & (EV_SIGNAL | EV_READ | EV_PERSIST)) == EV_READ &&
         event_get_fd(each) >= 0;
}

/// What tcp sends first over a connection (mca_btl_tcp_endpoint_hs_msg_t).
struct FirstBytes {
  opal_process_name_t process;
  std::array<char, 16> magic;
};

/// Does a connection say that it is of a process that is known? It is left as it is.
bool is_of_known(const event* each, KnowsProcess knows, const void* context) noexcept {
  constexpr std::string_view magic = "OPAL-TCP-BTL";
  FirstBytes first{};
  const ssize_t bytes =
      recv(event_get_fd(each), &first, sizeof first, MSG_PEEK | MSG_DONTWAIT | MSG_NOSIGNAL);
  if (bytes != sizeof first || std::memcmp(first.magic.data(), magic.data(), magic.size()) != 0) {
    return false;
  }
  OPAL_PROCESS_NAME_NTOH(first.process);
  return knows(first.process, context);
}

/// The connections that have come in, out of the event loop for one turn.
class ConnectionsLeftOut {
 public:
  ConnectionsLeftOut(KnowsProcess knows, const void* context) noexcept {
#if LIBEVENT_VERSION_NUMBER >= 0x02010200
    event_base_foreach_event(
        opal_sync_event_base,
        [](const event_base*, const event* each, void* all) -> int {
          static_cast<ConnectionsLeftOut*>(all)->note(each);
          return 0;
        },
        this);
#endif
    if (too_many_) return;
    const auto known = [=](const event* each) { return is_of_known(each, knows, context); };
    count_ = static_cast<std::size_t>(
        std::remove_if(events_.begin(), events_.begin() + count_, known) - events_.begin());
    for (event* each : *this) event_del(each);
  }
  ~ConnectionsLeftOut() {
    if (too_many_) return;
    for (event* each : *this) event_add(each, nullptr);
  }
  ConnectionsLeftOut(const ConnectionsLeftOut&) = delete;
  ConnectionsLeftOut& operator=(const ConnectionsLeftOut&) = delete;

  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  /// Are there more than this can leave out?
  [[nodiscard]] bool too_many() const noexcept { return too_many_; }

 private:
  [[nodiscard]] event** begin() noexcept { return events_.data(); }
  [[nodiscard]] event** end() noexcept { return events_.data() + count_; }
  void note(const event* each) noexcept {
    if (!is_for_once(each)) return;
    too_many_ = too_many_ || count_ == events_.size();
    if (!too_many_) events_[count_++] = const_cast<event*>(each);
  }

  std::array<event*, 64> events_{};
  std::size_t count_ = 0;
  bool too_many_ = false;
};

}  // namespace

std::size_t poll_events_of(KnowsProcess knows, const void* context) noexcept {
  const ConnectionsLeftOut left_out(knows, context);
  if (!left_out.too_many()) poll_events();
  return left_out.count();
}

#if LIBEVENT_VERSION_NUMBER >= 0x02010200
namespace {

/// What list_descriptors finds. Nothing may be thrown or asked inside libevent's enumeration.
struct Found {
  std::vector<WatchedDescriptor>& descriptors;
  std::array<const event*, 16> timers{};
  std::size_t timer_count = 0;

  void note(const event* each) noexcept {
    const int events = event_get_events(each);
    if ((events & EV_SIGNAL) != 0) return;
    if (const int fd = event_get_fd(each); fd < 0) {
      if (timer_count < timers.size()) timers[timer_count++] = each;
    } else if (descriptors.size() < descriptors.capacity()) {
      descriptors.push_back({fd, is_for_once(each), (events & EV_READ) != 0 ? each : nullptr});
    }
  }
};

/// Does a timer end about now? libevent reads a clock that advances by ticks of the system, of up
/// to 10 ms and late on a busy machine, and adds how far behind it once was.
bool is_due(const event* timer) noexcept {
  timeval end{};
  timeval now{};
  if (event_pending(timer, EV_TIMEOUT, &end) == 0) return false;
  gettimeofday(&now, nullptr);
  constexpr std::int64_t us_per_s = 1'000'000, slack_us = 20'000;
  return (end.tv_sec - now.tv_sec) * us_per_s + (end.tv_usec - now.tv_usec) <= slack_us;
}

}  // namespace
#endif

bool list_descriptors(std::vector<WatchedDescriptor>& descriptors) {
  descriptors.clear();
#if LIBEVENT_VERSION_NUMBER >= 0x02010200
  constexpr std::size_t of_libevent = 16;  // listed, but not counted
  descriptors.reserve(count_events() + of_libevent);
  Found found{descriptors};
  event_base_foreach_event(
      opal_sync_event_base,
      [](const event_base*, const event* each, void* all) -> int {
        static_cast<Found*>(all)->note(each);
        return 0;
      },
      &found);
  // A connection and its event for writing, which comes behind it, are one; `false` is less than
  // `true`.
  std::ranges::sort(descriptors, {}, [](const WatchedDescriptor& each) {
    return std::tuple(each.fd, each.once, each.reader == nullptr);
  });
  const auto twice = std::ranges::unique(descriptors, {}, &WatchedDescriptor::fd);
  descriptors.erase(twice.begin(), twice.end());
  return std::any_of(found.timers.begin(), found.timers.begin() + found.timer_count, is_due);
#else
  return false;
#endif
}

std::size_t count_events() noexcept {
#if LIBEVENT_VERSION_NUMBER >= 0x02010200
  return static_cast<std::size_t>(
      event_base_get_num_events(opal_sync_event_base, EVENT_BASE_COUNT_ADDED));
#else
  return 0;
#endif
}

}  // namespace overlap
