// Messages in: what comes through rings and the channel is put into one order (P2.2, P2.5).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_receive.hpp"

#include <cstring>

#include "btl_ring_fault.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {
namespace {

constexpr std::uint32_t messages_per_visit = 16;  // of one ring, before the others have their turn

constexpr const char* repeated = "it has been received already";

}  // namespace

void Receiver::deliver(Endpoint& endpoint, const MessageHeader& header, const std::byte* payload) {
  if (header.tag == 0) [[unlikely]] {
    handle_control(endpoint, payload, header.size_bytes);
    return;
  }
  parts_.upper.deliver(endpoint, header, payload);
}

/// Credits, and rings that have come to their end.
void Receiver::accept(Endpoint& endpoint, const MessageHeader& header, Channel channel) {
  const Noted noted = endpoint.stream.accept(header, channel);
  if (noted.fault != nullptr) [[unlikely]]
    refuse_message(endpoint, noted.fault);
  if (noted.send_ring_ended) [[unlikely]]
    parts_.out.end(endpoint);
  if (noted.receive_ring_ended) [[unlikely]]
    parts_.in.end(endpoint);
  if (endpoint.stream.wants_explicit()) [[unlikely]]
    parts_.busy.mark(endpoint);
}

int Receiver::take_from_ring(Endpoint& endpoint) {
  int taken = 0;
  ReceiveRing::Arrival arrival;
  // A callback may end up here again, or end the ring: look at everything anew.
  while (endpoint.in != nullptr && taken < static_cast<int>(messages_per_visit) &&
         endpoint.in->ring.peek(arrival)) {
    if (!endpoint.stream.is_next(arrival.header)) {
      if (endpoint.stream.is_past(arrival.header)) [[unlikely]]
        refuse_message(endpoint, repeated);
      break;
    }
    if (const char* fault = find_fault(arrival.header, slot_payload_bytes_)) [[unlikely]]
      refuse_message(endpoint, fault);
    IncomingRing& in = *endpoint.in;
    in.ring.advance();
    accept(endpoint, arrival.header, Channel::ring);
    deliver(endpoint, arrival.header, arrival.payload);
    ++counters().ring_received;
    ++taken;
    parts_.in.note_traffic(endpoint, Channel::ring);
    in.ring.free(arrival.slot);
    if (endpoint.stream.ring_state() == RingState::none)
      parts_.in.end(endpoint);  // put off until this slot was free
    if (!endpoint.held.empty()) take_held(endpoint);
  }
  if (taken > 0 && endpoint.stream.wants_explicit()) [[unlikely]]
    parts_.busy.mark(endpoint);
  return taken;
}

/// Messages of the channel whose turn has come.
void Receiver::take_held(Endpoint& endpoint) {
  while (!endpoint.held.empty() && endpoint.stream.is_next(endpoint.held.front().header)) {
    const HeldMessage message = endpoint.held.front();
    endpoint.held.pop_front();
    accept(endpoint, message.header, Channel::send_receive);
    deliver(endpoint, message.header, parts_.buffers.at(message.buffer) + sizeof(MessageHeader));
    parts_.buffers.repost(message.buffer);
  }
}

void Receiver::on_channel_message(Endpoint& endpoint, std::uint32_t buffer, std::uint32_t bytes) {
  MessageHeader header;
  std::byte* const memory = parts_.buffers.at(buffer);
  std::memcpy(&header, memory, sizeof header);
  if (bytes < sizeof header || bytes != sizeof header + header.size_bytes)
    refuse_message(endpoint, "its length is not what its header says");
  if (const char* fault = find_fault(header, channel_payload_bytes_))
    refuse_message(endpoint, fault);
  ++counters().channel_received;
  if (!endpoint.stream.is_next(header)) {
    if (endpoint.stream.is_past(header)) refuse_message(endpoint, repeated);
    endpoint.held.push_back({buffer, header});
    ++counters().held_messages;
    take_from_ring(endpoint);  // what it waits for is there, or on its way
    return;
  }
  accept(endpoint, header, Channel::send_receive);
  deliver(endpoint, header, memory + sizeof header);
  parts_.buffers.repost(buffer);
  if (!endpoint.held.empty()) take_held(endpoint);
  parts_.in.note_traffic(endpoint, Channel::send_receive);
}

void Receiver::handle_control(Endpoint& endpoint, const std::byte* payload, std::uint32_t bytes) {
  ControlBody body;
  if (bytes != sizeof body) refuse_message(endpoint, "a control message of the wrong length");
  std::memcpy(&body, payload, sizeof body);
  if (const char* fault = find_fault(body)) refuse_message(endpoint, fault);
  switch (body.kind) {
    case control_kind::credits_only: return;  // the header has said everything
    case control_kind::ring_open: parts_.out.open(endpoint, body); return;
    case control_kind::ring_declined: parts_.in.on_declined(endpoint); return;
    case control_kind::goodbye: endpoint.ending.take(EndingEvent::goodbye_seen); return;
  }
}

}  // namespace overlap::ring
