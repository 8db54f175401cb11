// Progress: what opal_progress calls, and the loop of calls that wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/waiting.hpp"

namespace overlap::speculative {
namespace {

void poll_until_complete(ompi_request_t& request) {
  if (opal_using_threads()) {
    ompi_request_wait_completion(&request);
    return;
  }
  poll_until(pml->driver, pml->completions, [&request] { return REQUEST_COMPLETE(&request); });
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

void wait_complete(ompi_request_t& request, bool ended) noexcept {
  // A socket mostly takes a small message at once: with several threads, waiting for what has ended
  // would hand the progress over to another one.
  if (ended) pml->completions.drain();
  if (!REQUEST_COMPLETE(&request)) poll_until_complete(request);
  pml->interrupts.ring_for_work();
}

}  // namespace overlap::speculative
