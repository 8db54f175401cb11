// Messages out: through a ring where the peer has given one and has room, else through the
// send/receive channel.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_send.hpp"

#include <cstring>

#include "btl_ring_tunables.hpp"
#include "work_id.hpp"

namespace overlap::ring {
namespace {

[[nodiscard]] bool may_wake(const Endpoint& endpoint, std::uint32_t flags) noexcept {
  return (flags & MCA_BTL_DES_FLAGS_SIGNAL) != 0 && endpoint.sleeps;
}

}  // namespace

bool Sender::try_send(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces,
                      std::uint32_t flags) {
  if (!can_send(endpoint)) [[unlikely]] {
    parts_.connector.want(endpoint.messages);
    return false;
  }
  if (!endpoint.messages.account.has_room()) return false;
  const bool wakes = may_wake(endpoint, flags);
  if (endpoint.stream.route(pieces.bytes(), slot_payload_bytes_) == Channel::ring) [[likely]] {
    if (wakes) parts_.wake_ups.note_sent(endpoint, now_ns());
    return try_post_ring(endpoint, tag, pieces);
  }
  if (endpoint.out != nullptr) ++counters().ring_full;
  return try_post_channel(endpoint, tag, pieces, wakes);
}

/// One RDMA write of header, payload and tail flag, with the slot's own work request (P2.1, P2.2).
bool Sender::try_post_ring(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces) {
  OutgoingRing& out = *endpoint.out;
  const std::uint32_t slot = out.ring.head_slot();
  pieces.copy_to(out.ring.slot(slot) + sizeof(MessageHeader));
  const SendRing::Sealed sealed =
      out.ring.seal(endpoint.stream.next_header(tag, pieces.bytes(), Channel::ring));
  fabric::WorkRequest& request = out.requests[slot];
  request.gather[0].bytes = sealed.wire_bytes;
  request.inline_data = sealed.wire_bytes <= parts_.able.inline_max_bytes;
  request.signalled = endpoint.messages.account.must_signal();
  if (!post(parts_.upper, endpoint.messages, request)) return false;
  ++counters().ring_sent;
  return true;
}

bool Sender::try_post_channel(Endpoint& endpoint, mca_btl_base_tag_t tag, const Pieces& pieces,
                              bool wakes) {
  const auto index = parts_.buffers.try_take(endpoint.number);
  if (!index) return false;
  if (endpoint.sleeps && !wakes) wakes = parts_.wake_ups.must_wake(endpoint);
  std::byte* const buffer = parts_.buffers.at(*index);
  const MessageHeader header =
      endpoint.stream.next_header(tag, pieces.bytes(), Channel::send_receive);
  std::memcpy(buffer, &header, sizeof header);
  pieces.copy_to(buffer + sizeof header);
  fabric::WorkRequest request;
  request.id = make_id(IdKind::channel_send, *index);
  request.opcode = fabric::Opcode::send;
  request.gather_count = 1;
  request.gather[0] = {buffer, static_cast<std::uint32_t>(sizeof header) + pieces.bytes(),
                       parts_.buffers.local_key(*index)};
  request.inline_data = request.gather[0].bytes <= parts_.able.inline_max_bytes;
  request.signalled = true;  // it gives the buffer back
  request.solicited = wakes;
  if (!post(parts_.upper, endpoint.messages, request)) {
    parts_.buffers.give_back(*index);
    return false;
  }
  ++counters().channel_sent;
  if (wakes) {
    WakeUps<Endpoint>::note_woken(endpoint);
    ++counters().waking_sent;
  }
  return true;
}

bool Sender::try_send_control(Endpoint& endpoint, const ControlBody& body, bool wakes) {
  const Pieces pieces{&body, sizeof body, nullptr, 0, nullptr};
  return can_send(endpoint) && endpoint.messages.account.has_room() &&
         try_post_channel(endpoint, 0, pieces, wakes);
}

bool Sender::try_send_in_place(Fragment& fragment) {
  Endpoint& endpoint = *fragment.endpoint;
  const std::uint32_t bytes = fragment.bytes();
  if (!can_send(endpoint) || !endpoint.messages.account.has_room() ||
      endpoint.stream.route(bytes, slot_payload_bytes_) != Channel::ring) {
    return false;
  }
  if (may_wake(endpoint, fragment.base.des_flags)) parts_.wake_ups.note_sent(endpoint, now_ns());
  OutgoingRing& out = *endpoint.out;
  const std::uint32_t slot = out.ring.head_slot();
  std::byte* const memory = out.ring.slot(slot);
  const auto header_bytes = static_cast<std::uint32_t>(fragment.segments[0].seg_len);
  std::memcpy(memory + sizeof(MessageHeader), fragment.segments[0].seg_addr.pval, header_bytes);
  const SendRing::Sealed sealed = out.ring.seal(
      endpoint.stream.next_header(fragment.tag, bytes, Channel::ring, control_bit::in_place));
  fabric::WorkRequest request = out.requests[slot];
  request.id = make_id(IdKind::in_place, &fragment);
  request.gather_count = 3;
  request.gather[0].bytes = static_cast<std::uint32_t>(sizeof(MessageHeader)) + header_bytes;
  request.gather[1] = {fragment.segments[1].seg_addr.pval,
                       static_cast<std::uint32_t>(fragment.segments[1].seg_len),
                       fragment.in_place->handle.local_key};
  request.gather[2] = {memory + sealed.tail_offset, sealed.tail_bytes, out.region.local_key};
  request.inline_data = false;
  request.signalled = true;  // the user's buffer is free then, not before
  if (!post(parts_.upper, endpoint.messages, request)) return false;
  parts_.frequent.note_lent(fragment);
  ++counters().ring_sent;
  ++counters().in_place_sent;
  return true;
}

void Sender::queue(Fragment& fragment) {
  fragment.endpoint->waiting.push_back(&fragment);
  parts_.busy.mark(*fragment.endpoint);
}

void Sender::flush(Endpoint& endpoint) {
  while (!endpoint.waiting.empty()) {
    Fragment& fragment = *endpoint.waiting.front();
    if (fragment.in_place != nullptr && try_send_in_place(fragment)) {
      endpoint.waiting.pop_front();  // its completion finishes it
      continue;
    }
    if (!try_send(endpoint, fragment.tag, pieces_of(fragment), fragment.base.des_flags)) return;
    endpoint.waiting.pop_front();
    parts_.sent.finish_later(fragment);
  }
}

}  // namespace overlap::ring
