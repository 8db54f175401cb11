// The ring that we offer to a peer, from the offer to its end.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

enum class OfferState : std::uint8_t {
  none,      ///< not offered (any more)
  open,      ///< offered; the peer may use it
  declined,  ///< offered; the peer does not take it
  refused,   ///< by us, for good: the peer's writes need not arrive in the order that a ring needs
};
enum class OfferEvent : std::uint8_t {
  order_unknown,  ///< of the peer's writes: a ring cannot be
  opened,         ///< a ring was made, and the peer has been told
  declined,       ///< the peer says so, perhaps late
  closed,         ///< the ring has been given back
};
enum class OfferAction : std::uint8_t {
  none,
  close_ring,     ///< ask the peer to stop, which it has not begun
  note_declined,  ///< no other ring before the next review of the polling set
};
struct OfferStep {
  OfferState next;
  OfferAction action;
  bool legal;
};

/// Advance the offer to one peer.
///
///   none --opened--> open --declined--> declined
///    ^                |                    |
///    +----closed------+-------closed-------+
///
///   event \ state   none      open                   declined              refused
///   order_unknown   refused   -                      -                     -
///   opened          open      -                      -                     -
///   declined        none (*)  declined | close_ring  declined              refused (*)
///   closed          -         none                   none | note_declined  -
///   (*) about an offer that has ended meanwhile; '-' is illegal and changes nothing
[[nodiscard]] OfferStep step(OfferState now, OfferEvent event) noexcept;

/// Where the offer to one peer stands.
class RingOffer {
 public:
  /// @returns  none too for an event that is illegal
  OfferAction take(OfferEvent event) noexcept {
    const OfferStep taken = step(state_, event);
    state_ = taken.next;
    return taken.action;
  }
  [[nodiscard]] bool may_open() const noexcept { return state_ == OfferState::none; }

 private:
  OfferState state_ = OfferState::none;
};

}  // namespace overlap::ring
