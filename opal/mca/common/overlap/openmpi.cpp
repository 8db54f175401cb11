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

void list_descriptors(std::vector<int>& descriptors) {
  descriptors.clear();
#if LIBEVENT_VERSION_NUMBER >= 0x02010200
  // Nothing may be thrown through libevent, which lists a few events of its own beside those that
  // it counts.
  constexpr std::size_t of_libevent = 16;
  descriptors.reserve(count_events() + of_libevent);
  event_base_foreach_event(
      opal_sync_event_base,
      [](const event_base*, const event* each, void* list) -> int {
        auto& found = *static_cast<std::vector<int>*>(list);
        const int fd = (event_get_events(each) & EV_SIGNAL) == 0 ? event_get_fd(each) : -1;
        if (fd >= 0 && found.size() < found.capacity()) found.push_back(fd);
        return 0;
      },
      &descriptors);
  std::ranges::sort(descriptors);
  const auto twice = std::ranges::unique(descriptors);
  descriptors.erase(twice.begin(), twice.end());
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
