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

}  // namespace overlap
