// Rings: who gets one, how one is opened and how it ends (P2.6, P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

namespace overlap::ring {

/// A message has come from this peer: shall it get a ring, and which one has to leave for it?
void Transport::note_traffic(Endpoint& endpoint, Channel channel) {
  if (tunables.rings == rings_choice::off || finalizing_ || !can_send(endpoint)) return;
  const PollingSet::Change change = polling_.on_message(endpoint.number, channel);
  if (change.remove != PollingSet::none) [[unlikely]] {
    Endpoint& leaving = *peers_.at(change.remove)->endpoint();
    leaving.stream.close_ring();
    mark_busy(leaving);
  }
  if (change.add != PollingSet::none) [[unlikely]] {
    // The set knows peers by number, also those that were given up.
    const Handle* newcomer = peers_.at(change.add);
    if (newcomer == nullptr || !open_incoming(*newcomer->endpoint())) polling_.refused(change.add);
  }
}

/// Is the end of what this peer writes known to arrive last? Asked once for each ring.
bool Transport::may_open_ring(Endpoint& endpoint) const {
  const fabric::WriteOrder order = endpoint.messages.queue_pair->write_order();
  const TailOrder tail = order.last_byte == fabric::LastByte::last ? TailOrder::guaranteed
                         : order.last_byte == fabric::LastByte::assumed_last
                             ? TailOrder::assumed_in_packet
                             : TailOrder::unknown;
  const RingPolicy policy =
      tunables.rings == rings_choice::force ? RingPolicy::force : RingPolicy::automatic;
  if (overlap::ring::may_open_ring(policy, tail, slot_bytes_, order.packet_bytes)) return true;
  endpoint.ring_refused = true;
  if (tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: no ring for %s: the end of a write is not known to arrive last (packets "
                "of %u bytes, slots of %u); btl_ring_rings = force uses rings nevertheless",
                OPAL_NAME_PRINT(endpoint.proc.proc_name), order.packet_bytes, slot_bytes_);
  }
  return false;
}

/// Make the receiver's half and tell the sender where it is. @returns false: not now, or the peer
/// does not want it
bool Transport::open_incoming(Endpoint& endpoint) {
  if (endpoint.in != nullptr || endpoint.ring_refused || !can_send(endpoint)) return false;
  if (!may_open_ring(endpoint)) return false;
  const std::uint32_t area = segment_->free_area();
  if (area == UINT32_MAX) return false;
  std::byte* const memory = segment_->ring(area);
  const std::size_t bytes = std::size_t{tunables.ring_slots} * slot_bytes_;
  if (!segment_->try_reserve(area)) {
    tell_no_room(bytes);
    return false;  // no fault: the channel takes everything
  }
  const auto region =
      memory_.try_add(memory, bytes, fabric::access::local_write | fabric::access::remote_write,
                      segment_->backing(memory));
  if (!region) {
    segment_->close(area);
    return false;  // the same
  }
  const ControlBody body{.kind = control_kind::ring_open,
                         .slots = tunables.ring_slots,
                         .slot_bytes = slot_bytes_,
                         .remote_key = region->remote_key,
                         .address = reinterpret_cast<std::uintptr_t>(memory)};
  endpoint.in = std::make_unique<IncomingRing>(
      IncomingRing{area, *region, ReceiveRing(memory, tunables.ring_slots, slot_bytes_)});
  if (!try_send_control(endpoint, body)) {  // no room now
    memory_.remove(endpoint.in->region);
    endpoint.in.reset();
    segment_->close(area);
    return false;
  }
  endpoint.stream.ring_opened(&endpoint.in->ring);
  endpoint.in->ring.publish_head(&segment_->area(area).head);
  segment_->open(area, endpoint.number);
  polling_.added(endpoint.number, &endpoint.in->ring);
  // Before the first large transfer, which would have to wait for it; but not against a refusal.
  if (endpoint.bulk.refusals == 0) want(endpoint.bulk);
  ++counters().rings_opened;
  return true;
}

/// The sender has put its last message into our half, and we have taken it. A callback that is
/// still at one of its slots ends it later.
void Transport::end_incoming(Endpoint& endpoint) noexcept {
  if (endpoint.in != nullptr && endpoint.in->ring.drained()) close_incoming(endpoint);
}

void Transport::close_incoming(Endpoint& endpoint) noexcept {
  const std::uint32_t area = endpoint.in->area;
  memory_.remove(endpoint.in->region);
  polling_.removed(endpoint.number);
  if (std::exchange(endpoint.ring_declined, false)) polling_.declined(endpoint.number);
  endpoint.in.reset();
  segment_->close(area);
  ++counters().rings_closed;
}

/// The peer has given us a ring: make our half of it, or say no.
void Transport::open_outgoing(Endpoint& endpoint, const ControlBody& body) {
  const std::size_t bytes = std::size_t{body.slots} * body.slot_bytes;
  const bool wanted = outgoing_rings_ < tunables.polling_set && body.slot_bytes == slot_bytes_ &&
                      endpoint.out == nullptr;
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
  ++outgoing_rings_;
}

/// Nothing comes through the ring that the peer has opened; its place is free for another peer as
/// soon as it learns that.
void Transport::decline(Endpoint& endpoint) {
  endpoint.decline_due = !try_send_control(endpoint, {.kind = control_kind::ring_declined});
  if (endpoint.decline_due) mark_busy(endpoint);
}

/// The peer does not look at its half any more. Ours stays until the device has read it for the
/// last time.
void Transport::end_outgoing(Endpoint& endpoint) noexcept {
  if (endpoint.out == nullptr) return;
  endpoint.stream.attach_send_ring(nullptr);
  endpoint.out->last_request = endpoint.messages.posted;
  endpoint.retired.push_back(std::move(endpoint.out));
  forget_retired(endpoint, false);
}

/// Give retired rings back that the device has read for the last time. Their arrival at the peer is
/// not enough: a device that has missed the acknowledgement reads the memory again.
void Transport::forget_retired(Endpoint& endpoint, bool all) noexcept {
  while (!endpoint.retired.empty()) {
    OutgoingRing& oldest = *endpoint.retired.front();
    if (!all && endpoint.messages.ended() < oldest.last_request) return;
    memory_.remove(oldest.region);
    endpoint.retired.pop_front();
    --outgoing_rings_;
  }
}

void Transport::handle_control(Endpoint& endpoint, const std::byte* payload, std::uint32_t bytes) {
  ControlBody body;
  if (bytes != sizeof body) refuse_message(endpoint, "a control message of the wrong length");
  std::memcpy(&body, payload, sizeof body);
  if (const char* fault = find_fault(body)) refuse_message(endpoint, fault);
  switch (body.kind) {
    case control_kind::credits_only: return;  // the header has said everything
    case control_kind::ring_open: open_outgoing(endpoint, body); return;
    case control_kind::ring_declined:
      if (endpoint.in == nullptr) return;  // closed meanwhile
      endpoint.ring_declined = true;
      endpoint.stream.close_ring();
      mark_busy(endpoint);
      return;
    case control_kind::goodbye: endpoint.said_goodbye = true; return;
  }
}

}  // namespace overlap::ring
