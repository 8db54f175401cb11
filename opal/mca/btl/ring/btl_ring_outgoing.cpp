// The rings that peers have given us: our halves, which we send from.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_outgoing.hpp"

#include <cstddef>
#include <optional>
#include <utility>

#include "btl_ring_tunables.hpp"
#include "lines.hpp"
#include "work_id.hpp"

namespace overlap::ring {

void OutgoingRings::open(Endpoint& endpoint, const ControlBody& body) {
  const std::size_t bytes = std::size_t{body.slots} * body.slot_bytes;
  const bool wanted =
      rings_ < tunables.polling_set && body.slot_bytes == slot_bytes() && endpoint.out == nullptr;
  auto memory = allocate_lines(bytes);
  const auto region = wanted ? memory_.try_add(memory.get(), bytes, 0) : std::nullopt;
  if (!region) {
    ++counters().rings_declined;
    decline(endpoint);
    return;
  }
  std::byte* const base = memory.get();
  endpoint.out.reset(new OutgoingRing{
      std::move(memory), *region, SendRing(base, body.slots, body.slot_bytes), {}});
  endpoint.out->requests.resize(body.slots);
  for (std::uint32_t i = 0; i < body.slots; ++i) {
    fabric::WorkRequest& request = endpoint.out->requests[i];
    request.id = make_id(IdKind::ring_write, &endpoint);
    request.opcode = fabric::Opcode::write;
    request.gather_count = 1;
    request.gather[0] = {endpoint.out->ring.slot(i), 0, region->local_key};
    request.remote_address = body.address + std::uint64_t{i} * body.slot_bytes;
    request.remote_key = body.remote_key;
  }
  endpoint.stream.attach_send_ring(&endpoint.out->ring);
  endpoint.decline_due = false;  // it was about an earlier one
  ++rings_;
}

void OutgoingRings::decline(Endpoint& endpoint) {
  endpoint.decline_due = !sender_.try_send_control(endpoint, {.kind = control_kind::ring_declined});
  if (endpoint.decline_due) busy_.mark(endpoint);
}

void OutgoingRings::end(Endpoint& endpoint) noexcept {
  if (endpoint.out == nullptr) return;
  endpoint.stream.attach_send_ring(nullptr);
  endpoint.out->last_request = endpoint.messages.posted;
  endpoint.retired.push_back(std::move(endpoint.out));
  forget_retired(endpoint, false);
}

void OutgoingRings::forget_retired(Endpoint& endpoint, bool all) noexcept {
  while (!endpoint.retired.empty()) {
    OutgoingRing& oldest = *endpoint.retired.front();
    if (!all && endpoint.messages.ended() < oldest.last_request) return;
    memory_.remove(oldest.region);
    endpoint.retired.pop_front();
    --rings_;
  }
}

}  // namespace overlap::ring
