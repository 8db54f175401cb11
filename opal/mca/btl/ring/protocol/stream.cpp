// The rare parts of a stream: opening and closing rings.
// SPDX-License-Identifier: BSD-3-Clause
#include "stream.hpp"

namespace overlap::ring {

void Stream::close_ring() noexcept {
  if (ring_state_ != RingState::open) return;
  ring_state_ = RingState::closing;
  pending_control_ |= control_bit::close_ring;
}

/// Control bits for the message that is being made. Its credits are taken already and are the last
/// ones of a closing ring.
std::uint8_t Stream::take_control() noexcept {
  const std::uint8_t control = pending_control_;
  pending_control_ = 0;
  if ((control & control_bit::close_ring) != 0) attach_receive_ring(nullptr);
  return control;
}

const char* Stream::find_control_fault(const MessageHeader& header,
                                       Channel channel) const noexcept {
  if ((header.control & control_bit::unordered) != 0) {
    return channel == Channel::ring ? "message outside the order in a ring" : nullptr;
  }
  if (header.sequence != expected_) return "message out of its turn";
  if (header.credits != 0 &&
      (send_ring_ == nullptr ||
       header.credits > send_ring_->slot_count() - send_ring_->free_slots())) {
    return "more credits than slots are out";
  }
  if ((header.control & control_bit::close_ring) != 0 &&
      (pending_control_ & control_bit::ring_closed) != 0) {
    return "a ring is closed twice";
  }
  if ((header.control & control_bit::ring_closed) != 0) {
    const bool asked =
        ring_state_ == RingState::closing && (pending_control_ & control_bit::close_ring) == 0;
    if (!asked) return "a ring is closed unasked";
    if (channel == Channel::ring) return "a closed ring is used";
  }
  return nullptr;
}

Noted Stream::accept_control(const MessageHeader& header, Channel channel) noexcept {
  Noted noted;
  noted.fault = find_control_fault(header, channel);
  if (noted.fault != nullptr || (header.control & control_bit::unordered) != 0) return noted;
  ++expected_;
  if (header.credits != 0)
    static_cast<void>(send_ring_->on_credits(header.credits));  // looked at above
  if ((header.control & control_bit::close_ring) != 0) {
    noted.send_ring_ended = send_ring_ != nullptr;
    send_ring_ = nullptr;
    pending_control_ |= control_bit::ring_closed;
  }
  if ((header.control & control_bit::ring_closed) != 0) {
    noted.receive_ring_ended = true;
    ring_state_ = RingState::none;
  }
  return noted;
}

}  // namespace overlap::ring
