// Progress: what opal_progress calls, and the loop of calls that wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/waiting.hpp"

namespace overlap::speculative {

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

void end_last_meeting() noexcept {
  pml->last_meeting_over = true;
  pml->completions.drain();
}

void wait_complete(ompi_request_t& request, bool ended) noexcept {
  // A socket mostly takes a small message at once: with several threads, waiting for what has ended
  // would hand the progress over to another one.
  if (ended) pml->completions.drain();
  // Not as Open MPI waits, where one thread polls and completes for the others: who is woken finds
  // its waker without a processor, and spins for milliseconds on a busy node.
  poll_until(pml->driver, pml->completions, [&request] { return REQUEST_COMPLETE(&request); });
  // Another thread may have completed it: its result before REQUEST_COMPLETE, which
  // ompi_request_complete sets by an atomic exchange.
  std::atomic_thread_fence(std::memory_order_acquire);
  pml->interrupts.ring_for_work();
}

void enter_send() noexcept {
  pml->awaited_copies.enter_send();
  pml->protocol.expect_receive();
}

void wait_in_send(ompi_request_t& request, bool ended) noexcept {
  wait_complete(request, ended);
  {
    const Entry entry;
    pml->awaited_copies.leave_send();
    pml->protocol.expect_no_longer();
  }
  if (pml->awaited_copies.keep_call()) [[unlikely]] {
    poll_until(pml->driver, pml->completions, [] { return !pml->awaited_copies.keep_call(); });
    pml->interrupts.ring_for_work();
  }
}

}  // namespace overlap::speculative
