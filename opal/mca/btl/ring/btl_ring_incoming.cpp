// The rings that peers send through: who gets one, how one is opened and how it ends (P2.6, P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_incoming.hpp"

#include <cstddef>

#include "protocol/ring_policy.hpp"

#include "btl_ring_fault.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {
namespace {

SetPolicy policy() noexcept {
  return tunables.polling_policy == polling_policy_choice::traffic ? SetPolicy::traffic
                                                                   : SetPolicy::first;
}

PollOrder order() noexcept {
  switch (tunables.polling_order) {
    case polling_order_choice::sequential: return PollOrder::sequential;
    case polling_order_choice::circular: return PollOrder::circular;
    case polling_order_choice::recent: return PollOrder::recent;
  }
  return PollOrder::sequential;
}

}  // namespace

IncomingRings::IncomingRings(const RingParts& parts)
    : parts_(parts), polling_(tunables.polling_set, policy(), order(), tunables.polling_review) {}

void IncomingRings::note_traffic(Endpoint& endpoint, Channel channel) {
  if (tunables.rings == rings_choice::off || parts_.upper.closed() || !Sender::can_send(endpoint))
    return;
  const PollingSet::Change change = polling_.on_message(endpoint.number, channel);
  if (change.remove != PollingSet::none) [[unlikely]] {
    Endpoint& leaving = parts_.peers.at(change.remove);
    leaving.stream.close_ring();
    parts_.busy.mark(leaving);
  }
  if (change.add != PollingSet::none) [[unlikely]] {
    // The set knows peers by number, also those that were given up.
    Endpoint* const newcomer = parts_.peers.find(change.add);
    if (newcomer == nullptr || !try_open(*newcomer)) polling_.refused(change.add);
  }
}

/// Is the end of what this peer writes known to arrive last? Asked once for each ring.
bool IncomingRings::may_open(Endpoint& endpoint) {
  const fabric::WriteOrder order = endpoint.messages.queue_pair->write_order();
  const TailOrder tail = order.last_byte == fabric::LastByte::last ? TailOrder::guaranteed
                         : order.last_byte == fabric::LastByte::assumed_last
                             ? TailOrder::assumed_in_packet
                             : TailOrder::unknown;
  const RingPolicy policy =
      tunables.rings == rings_choice::force ? RingPolicy::force : RingPolicy::automatic;
  if (may_open_ring(policy, tail, slot_bytes(), order.packet_bytes)) return true;
  endpoint.offer.take(OfferEvent::order_unknown);
  if (tunables.verbose >= 1) {
    opal_output(0,
                "btl/ring: no ring for %s: the end of a write is not known to arrive last (packets "
                "of %u bytes, slots of %u); btl_ring_rings = force uses rings nevertheless",
                OPAL_NAME_PRINT(endpoint.proc.proc_name), order.packet_bytes, slot_bytes());
  }
  return false;
}

/// Make the receiver's half and tell the sender where it is. @returns false: not now, or the peer
/// does not want it
bool IncomingRings::try_open(Endpoint& endpoint) {
  if (!endpoint.offer.may_open() || !Sender::can_send(endpoint)) return false;
  if (!may_open(endpoint)) return false;
  const std::uint32_t area = parts_.segment.free_area();
  if (area == UINT32_MAX) return false;
  std::byte* const memory = parts_.segment.ring(area);
  const std::size_t bytes = std::size_t{tunables.ring_slots} * slot_bytes();
  if (!parts_.segment.try_reserve(area)) {
    tell_no_room(bytes);
    return false;  // no fault: the channel takes everything
  }
  const auto region = parts_.memory.try_add(
      memory, bytes, fabric::access::local_write | fabric::access::remote_write,
      parts_.segment.backing(memory));
  if (!region) {
    parts_.segment.close(area);
    return false;  // the same
  }
  const ControlBody body{.kind = control_kind::ring_open,
                         .slots = tunables.ring_slots,
                         .slot_bytes = slot_bytes(),
                         .remote_key = region->remote_key,
                         .address = reinterpret_cast<std::uintptr_t>(memory)};
  endpoint.in = std::make_unique<IncomingRing>(
      IncomingRing{area, *region, ReceiveRing(memory, tunables.ring_slots, slot_bytes())});
  if (!parts_.sender.try_send_control(endpoint, body)) {  // no room now
    parts_.memory.remove(endpoint.in->region);
    endpoint.in.reset();
    parts_.segment.close(area);
    return false;
  }
  endpoint.offer.take(OfferEvent::opened);
  endpoint.stream.ring_opened(&endpoint.in->ring);
  endpoint.in->ring.publish_head(&parts_.segment.area(area).head);
  parts_.segment.open(area, endpoint.number);
  polling_.added(endpoint.number, &endpoint.in->ring);
  // Before the first large transfer, which would have to wait for it; but not against a refusal.
  if (endpoint.bulk.refusals == 0) parts_.connector.want(endpoint.bulk);
  ++counters().rings_opened;
  return true;
}

void IncomingRings::end(Endpoint& endpoint) noexcept {
  if (endpoint.in != nullptr && endpoint.in->ring.drained()) close(endpoint);
}

void IncomingRings::close(Endpoint& endpoint) noexcept {
  const std::uint32_t area = endpoint.in->area;
  parts_.memory.remove(endpoint.in->region);
  polling_.removed(endpoint.number);
  if (endpoint.offer.take(OfferEvent::closed) == OfferAction::note_declined)
    polling_.declined(endpoint.number);
  endpoint.in.reset();
  parts_.segment.close(area);
  ++counters().rings_closed;
}

void IncomingRings::on_declined(Endpoint& endpoint) {
  if (endpoint.offer.take(OfferEvent::declined) != OfferAction::close_ring) return;
  endpoint.stream.close_ring();
  parts_.busy.mark(endpoint);
}

}  // namespace overlap::ring
