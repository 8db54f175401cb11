// Messages that could go eagerly through shared memory, and are read by their receiver.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/kernel_copy.hpp"

namespace overlap::speculative {

bool may_be_read(Endpoint& endpoint) noexcept {
  return tunables.blocking_copy != blocking_copy_choice::fragments &&
         tunables.hazard_control == hazard_control_choice::envelope_sequence &&
         !opal_progress_yield_when_idle && kernel_copies(endpoint) && !may_speculate(endpoint) &&
         !transfer_rail(endpoint)->get_failed;
}

BlockingCopies eager_reads() noexcept {
  return tunables.blocking_copy == blocking_copy_choice::read ? BlockingCopies::read
                                                              : BlockingCopies::measured;
}

void end_read(SendRequest& request) noexcept {
  const EagerRead read = std::exchange(request.read, {});
  const EagerReads::Receiver receiver = receiver_of(*request.op.peer, *request.endpoint);
  if (request.op.receive != 0) {
    EagerReads::refused(receiver);
  } else {
    const std::uint64_t took_ns = read.started_ns != 0 ? steady_now_ns() - read.started_ns : 0;
    pml->eager_reads.read(receiver, read.choice, request.op.length_bytes, took_ns);
  }
}

bool Delivery::copy(Peer& from, const RemoteMemory& memory, std::span<std::byte> into) {
  // A communicator that this process has not used yet knows no endpoint, and the interrupt thread
  // makes none.
  Endpoint* const endpoint = pml->interrupts.inside() ? known_endpoint(from) : endpoint_of(from);
  if (endpoint == nullptr || !memory.accessible || !kernel_copies(*endpoint)) return false;
  Rail& rail = *transfer_rail(*endpoint);
  const bool copied = !rail.get_failed && copies_at_once(rail, memory.address) &&
                      copy_at_once(rail, rail.btl().btl_get, memory.address, into);
  if (copied) process_counters().get_bytes += into.size();
  return copied;
}

void Delivery::note_left(Peer& from) {
  // For the interrupt thread, which makes none; what it leaves itself comes from known senders.
  if (!pml->interrupts.inside()) static_cast<void>(endpoint_of(from));
  set_retries();
}

void Delivery::note_none_left() { set_retries(); }

}  // namespace overlap::speculative
