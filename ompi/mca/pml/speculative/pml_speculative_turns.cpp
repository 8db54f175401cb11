// Messages that could go eagerly through shared memory, and are read by their receiver.
// SPDX-License-Identifier: BSD-3-Clause
#include "pml_speculative_request.hpp"

#include "ompi/mca/common/overlap/kernel_copy.hpp"

namespace overlap::speculative {

bool takes_turns(Endpoint& endpoint) noexcept {
  return tunables.blocking_copy != blocking_copy_choice::fragments && !opal_using_threads() &&
         tunables.hazard_control == hazard_control_choice::envelope_sequence &&
         !opal_progress_yield_when_idle && kernel_copies(endpoint) && !may_speculate(endpoint);
}

bool is_better_read(Endpoint& endpoint, std::uint64_t bytes, bool contiguous) noexcept {
  if (!takes_turns(endpoint) || !pml->turns.answers(&endpoint) || !contiguous) return false;
  if (tunables.blocking_copy == blocking_copy_choice::read) return true;
  const CopyWay way = pml->turns.choose(bytes);
  if (pml->turns.is_timed()) pml->turns.started(steady_now_ns());
  return way == CopyWay::read;
}

void note_answer(const ReceiveRequest& request) noexcept {
  // With more threads the communicator may be gone when the receive has ended.
  if (opal_using_threads()) return;
  const mca_pml_base_request_t& base = request.base.req_base;
  Endpoint* const endpoint =
      known_endpoint(protocol_of(base.req_comm).peer(base.req_ompi.req_status.MPI_SOURCE));
  if (endpoint == nullptr || !takes_turns(*endpoint)) return;
  pml->turns.received(endpoint, pml->turns.is_timed() ? steady_now_ns() : 0);
}

bool Delivery::copy(Peer& from, const RemoteMemory& memory, std::span<std::byte> into) {
  // A communicator that this process has not used yet knows no endpoint, and the interrupt thread
  // makes none.
  Endpoint* const endpoint = pml->interrupts.inside() ? known_endpoint(from) : endpoint_of(from);
  if (endpoint == nullptr || !memory.accessible || !kernel_copies(*endpoint)) return false;
  Rail& rail = *transfer_rail(*endpoint);
  return !rail.get_failed && copies_at_once(rail, memory.address) &&
         copy_at_once(rail, rail.btl().btl_get, memory.address, into);
}

}  // namespace overlap::speculative
