// What of openmpi.hpp exists once per process: the help folder and the event loop.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/openmpi.hpp"

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
      descriptors.push_back({fd, (events & (EV_READ | EV_PERSIST)) == EV_READ});
    }
  }
};

/// Does a timer end about now? libevent's clock is not exactly this one.
bool is_due(const event* timer) noexcept {
  timeval end{};
  timeval now{};
  if (event_pending(timer, EV_TIMEOUT, &end) == 0) return false;
  gettimeofday(&now, nullptr);
  constexpr std::int64_t us_per_s = 1'000'000, slack_us = 1000;
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
  // A connection and its event for writing are one; `false` is less than `true`.
  std::ranges::sort(descriptors, {},
                    [](const WatchedDescriptor& each) { return std::pair(each.fd, each.once); });
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
