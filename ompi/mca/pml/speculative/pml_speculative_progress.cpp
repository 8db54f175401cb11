// Progress: what opal_progress calls, and the loop of calls that wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include <time.h>

#include "ompi/mca/common/overlap/protocol/idle_naps.hpp"

namespace overlap::speculative {
namespace {

// BTLs are polled so often for each turn of opal_progress, which does much that a blocked call does
// not wait for.
constexpr int polls_per_turn = 8;

/// Naps between turns, where other ranks need the processor of a call that waits.
class Waiting {
 public:
  void end_turn() noexcept {
    if (!opal_progress_yield_when_idle) return;
    const std::uint32_t nap_ns = naps_.end_turn(pml->driver.events());
    if (nap_ns == 0) return;
    const timespec nap{0, static_cast<long>(nap_ns)};
    nanosleep(&nap, nullptr);
  }

 private:
  IdleNaps naps_;
};

bool poll_once() {
  const Entry entry;
  pml->driver.poll();
  return !pml->completions.empty();
}

/// A call that waits is about to leave MPI, perhaps with part of another request's copy undone.
void ring_for_work() noexcept {
  if (!pml->interrupts.serves_node()) [[likely]]
    return;
  std::uint32_t delay_ns = InterruptThread::no_ring;
  {
    const Entry entry;
    delay_ns = pml->interrupts.must_ring_for_work();
  }
  if (delay_ns != InterruptThread::no_ring) pml->interrupts.ring(delay_ns);
}

void poll_until_complete(ompi_request_t& request) {
  if (opal_using_threads()) {
    ompi_request_wait_completion(&request);
    return;
  }
  Waiting waiting;
  while (!REQUEST_COMPLETE(&request)) {
    for (int i = 0; i < polls_per_turn && !REQUEST_COMPLETE(&request); ++i) {
      if (poll_once()) [[unlikely]]
        pml->completions.drain();
    }
    if (REQUEST_COMPLETE(&request)) return;
    opal_progress();
    if (!REQUEST_COMPLETE(&request)) waiting.end_turn();
  }
}

}  // namespace

int progress() noexcept {
  // From inside ourselves: something under the lock waits in opal_progress (a new connection, a
  // message to the user).
  if (progress_lock.held_by_me_hint()) [[unlikely]]
    return 0;
  int events = 0;
  bool ended = false;
  std::uint32_t ring_ns = InterruptThread::no_ring;
  {
    const Entry entry;
    events = pml->driver.poll();
    ended = !pml->completions.empty();
    ring_ns = pml->interrupts.must_ring_for_work();
  }
  if (ring_ns != InterruptThread::no_ring) [[unlikely]]
    pml->interrupts.ring(ring_ns);
  if (ended) [[unlikely]]
    events += static_cast<int>(pml->completions.drain());
  return events;
}

void wait_complete(ompi_request_t& request) noexcept {
  poll_until_complete(request);
  ring_for_work();
}

}  // namespace overlap::speculative
