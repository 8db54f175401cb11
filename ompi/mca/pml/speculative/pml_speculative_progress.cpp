// Progress: what opal_progress calls, and the loop of calls that wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include <time.h>

namespace overlap::speculative {
namespace {

// BTLs are polled so often for each turn of opal_progress, which does much that a blocked call does
// not wait for.
constexpr int polls_per_turn = 8;

/// Naps of a call that waits where other ranks need its processor: a rank that only yields waits
/// for a rotation of the run queue in each hop, one that sleeps is put in front when it wakes.
class IdleNaps {
 public:
  /// One more turn has brought nothing.
  void turn_was_empty() noexcept {
    if (!opal_progress_yield_when_idle || ++empty_turns_ < turns_before_naps) return;
    const timespec nap{0, nap_ns_};
    nanosleep(&nap, nullptr);
    nap_ns_ = std::min(nap_ns_ * 2, nap_max_ns);
  }

 private:
  static constexpr unsigned turns_before_naps = 2000;
  static constexpr long nap_max_ns = 1'000'000;
  unsigned empty_turns_ = 0;
  long nap_ns_ = 20'000;
};

bool poll_once() {
  const Entry entry;
  pml->driver.poll();
  return !pml->completions.empty();
}

}  // namespace

int progress() noexcept {
  // From inside ourselves: something under the lock waits in opal_progress (a new connection, a
  // message to the user).
  if (progress_lock.held_by_me_hint()) [[unlikely]]
    return 0;
  int events = 0;
  bool ended = false;
  {
    const Entry entry;
    events = pml->driver.poll();
    ended = !pml->completions.empty();
  }
  if (ended) [[unlikely]]
    events += static_cast<int>(pml->completions.drain());
  return events;
}

void wait_complete(ompi_request_t& request) noexcept {
  if (opal_using_threads()) {
    ompi_request_wait_completion(&request);
    return;
  }
  IdleNaps naps;
  while (!REQUEST_COMPLETE(&request)) {
    for (int i = 0; i < polls_per_turn && !REQUEST_COMPLETE(&request); ++i) {
      if (poll_once()) [[unlikely]]
        pml->completions.drain();
    }
    if (REQUEST_COMPLETE(&request)) return;
    opal_progress();
    if (!REQUEST_COMPLETE(&request)) naps.turn_was_empty();
  }
}

}  // namespace overlap::speculative
