// One pair of directions with a peer: sequence numbers and order over both channels, credits and
// ring control that ride along (P2.4, P2.5, P2.6).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "receive_ring.hpp"
#include "send_ring.hpp"
#include "wire.hpp"

namespace overlap::ring {

enum class Channel : std::uint8_t { ring, send_receive };

/// What was in the header of a message whose turn has come.
struct Noted {
  const char* fault = nullptr;   ///< in words: the peer breaks the protocol, nothing was changed
  bool send_ring_ended = false;  ///< the send ring is not used any more and is detached
  bool receive_ring_ended =
      false;  ///< the peer's last message in our ring has been taken; the ring is detached
};

/// Where our receive ring for the peer stands.
enum class RingState : std::uint8_t { none, open, closing };

/// Counts messages to and from one peer and decides what else each of them carries.
///
/// Every message in order is posted in the order of its number: who calls next_header() sends that
/// message, and has made sure before that there is room (SendQueueAccount). Credits and control
/// bits take effect when the message's turn comes, after all before it.
///
/// Life of a ring, owned by the receiver of its messages:
///
///   receiver                                        sender
///   ring_opened() and at once a ring_open           attach_send_ring(), or not (no memory):
///   message                                         nothing comes through it then
///   open: credits ride                              route() says ring
///   close_ring()
///   closing: close_ring rides on the next           accept() -> send_ring_ended: route() says
///     message, no credits after it                  send_receive, the slots go when the writes
///                                                   posted so far have completed; ring_closed
///   accept() -> receive_ring_ended: all             rides on the next message, whether a ring was
///     messages of the ring are taken, its           attached or not
///     memory goes when the ring is drained()
///   none: may open another one
class Stream {
 public:
  using RingState = ring::RingState;
  using Noted = ring::Noted;

  Stream() = default;
  /// @param first_sequence  the same on both sides
  explicit Stream(std::uint32_t first_sequence)
      : next_sequence_(first_sequence), expected_(first_sequence) {}

  // --- Sending

  /// @param ring  of a ring_open that was taken in its turn; nullptr: none
  void attach_send_ring(SendRing* ring) noexcept { send_ring_ = ring; }
  [[nodiscard]] SendRing* send_ring() const noexcept { return send_ring_; }

  /// Which way does a message go? Never waits: a full ring makes it send_receive (P2.4).
  [[nodiscard]] Channel route(std::uint32_t payload_bytes,
                              std::uint32_t slot_payload_max) const noexcept {
    return send_ring_ != nullptr && send_ring_->has_credit() && payload_bytes <= slot_payload_max
               ? Channel::ring
               : Channel::send_receive;
  }

  /// Header of the next message, which must go: takes the sequence number, the credits of the
  /// receive ring and what has to be said about rings.
  /// @param channel  as route() said; a message with tag 0 goes by send_receive
  /// @param control  nothing or in_place
  [[nodiscard]] MessageHeader next_header(std::uint8_t tag, std::uint32_t size_bytes,
                                          [[maybe_unused]] Channel channel,
                                          std::uint8_t control = 0) noexcept {
    MessageHeader header;
    header.head_flag = flag_value::primary;  // the channel's; in a ring seal() chooses
    header.tag = tag;
    header.control = control;
    header.size_bytes = size_bytes;
    header.sequence = next_sequence_++;
    if (credit_ring_ != nullptr)
      header.credits = static_cast<std::uint16_t>(credit_ring_->take_credits(UINT16_MAX));
    if (pending_control_ != 0) [[unlikely]]
      header.control |= take_control();
    return header;
  }

  /// Header of a chained completion: made in advance, sent by the device when its turn in the send
  /// queue comes. Has no number, takes nothing along, and goes by send_receive only: a ring could
  /// be closed before it arrives.
  [[nodiscard]] static MessageHeader unordered_header(std::uint8_t tag,
                                                      std::uint32_t size_bytes) noexcept {
    MessageHeader header;
    header.head_flag = flag_value::primary;
    header.tag = tag;
    header.control = control_bit::unordered;
    header.size_bytes = size_bytes;
    return header;
  }

  // --- Receiving

  /// Let the credits of this ring ride along. @param ring  nullptr: none
  void attach_receive_ring(ReceiveRing* ring) noexcept {
    credit_ring_ = ring;
    explicit_at_ = ring == nullptr ? 0 : (ring->slot_count() + 1) / 2;
  }

  /// Has the turn of this message come? Of an unordered one always.
  [[nodiscard]] bool is_next(const MessageHeader& header) const noexcept {
    return header.sequence == expected_ || (header.control & control_bit::unordered) != 0;
  }
  /// Is it one that has been taken already? Neither channel repeats messages: a fault of the peer,
  /// and it would wait for ever.
  [[nodiscard]] bool is_past(const MessageHeader& header) const noexcept {
    return !is_next(header) && header.sequence - expected_ >= 1U << 31U;
  }

  /// Take note of a message whose turn it is, before its payload is looked at.
  [[nodiscard]] Noted accept(const MessageHeader& header, Channel channel) noexcept {
    if ((header.control & ~control_bit::in_place) != 0) [[unlikely]]
      return accept_control(header, channel);
    if (header.sequence != expected_) [[unlikely]]
      return {"message out of its turn"};
    if (header.credits != 0 && (send_ring_ == nullptr || !send_ring_->on_credits(header.credits)))
        [[unlikely]] {
      return {"more credits than slots are out"};
    }
    ++expected_;
    return {};
  }

  // --- Ring control, at the ring's receiver

  /// A ring has been made. Call it next to next_header() of the ring_open message, right before or
  /// right after: the peer has to learn of the ring before anything that is said about it. Needs
  /// ring_state() none.
  void ring_opened(ReceiveRing* ring) noexcept {
    ring_state_ = RingState::open;
    attach_receive_ring(ring);
  }
  /// Ask the sender to stop. Needs ring_state() open; closing already: nothing.
  void close_ring() noexcept;
  [[nodiscard]] RingState ring_state() const noexcept { return ring_state_; }

  /// Must a credits_only message go when nothing else does? It goes by send_receive, so it never
  /// asks for another one.
  [[nodiscard]] bool wants_explicit() const noexcept {
    return pending_control_ != 0 ||
           (credit_ring_ != nullptr && credit_ring_->credits() >= explicit_at_);
  }

 private:
  [[nodiscard]] std::uint8_t take_control() noexcept;
  [[nodiscard]] Noted accept_control(const MessageHeader& header, Channel channel) noexcept;
  [[nodiscard]] const char* find_control_fault(const MessageHeader& header,
                                               Channel channel) const noexcept;

  SendRing* send_ring_ = nullptr;       ///< nullptr: none, or it is closed
  ReceiveRing* credit_ring_ = nullptr;  ///< nullptr: none, or close_ring has been sent: the sender
                                        ///< has no use for credits any more
  std::uint32_t next_sequence_ = 0;
  std::uint32_t expected_ = 0;
  std::uint32_t explicit_at_ = 0;     ///< credits
  std::uint8_t pending_control_ = 0;  ///< control_bit of the next message
  RingState ring_state_ = RingState::none;
};

}  // namespace overlap::ring
