// The machine of an offered ring, one function for each source state.
// SPDX-License-Identifier: BSD-3-Clause
#include "ring_offer.hpp"

namespace overlap::ring {

namespace {

using S = OfferState;
using E = OfferEvent;
using A = OfferAction;

constexpr OfferStep legal(S next, A action = A::none) { return {next, action, true}; }
constexpr OfferStep illegal(S now) { return {now, A::none, false}; }

OfferStep from_none(E event) noexcept {
  switch (event) {
    case E::order_unknown: return legal(S::refused);
    case E::opened: return legal(S::open);
    case E::declined: return legal(S::none);
    case E::closed: break;
  }
  return illegal(S::none);
}

OfferStep from_open(E event) noexcept {
  switch (event) {
    case E::declined: return legal(S::declined, A::close_ring);
    case E::closed: return legal(S::none);
    case E::order_unknown:
    case E::opened: break;
  }
  return illegal(S::open);
}

OfferStep from_declined(E event) noexcept {
  switch (event) {
    case E::declined: return legal(S::declined);
    case E::closed: return legal(S::none, A::note_declined);
    case E::order_unknown:
    case E::opened: break;
  }
  return illegal(S::declined);
}

OfferStep from_refused(E event) noexcept {
  switch (event) {
    case E::declined: return legal(S::refused);
    case E::order_unknown:
    case E::opened:
    case E::closed: break;
  }
  return illegal(S::refused);
}

}  // namespace

OfferStep step(OfferState now, OfferEvent event) noexcept {
  switch (now) {
    case S::none: return from_none(event);
    case S::open: return from_open(event);
    case S::declined: return from_declined(event);
    case S::refused: return from_refused(event);
  }
  return illegal(now);
}

}  // namespace overlap::ring
