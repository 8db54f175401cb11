// The machine of a peer's ending, one function for each source state.
// SPDX-License-Identifier: BSD-3-Clause
#include "ending.hpp"

namespace overlap::ring {

namespace {

using S = EndingState;
using E = EndingEvent;
using A = EndingAction;

constexpr EndingStep to(S next, A action = A::none) { return {next, action}; }

EndingStep from_used(E event) noexcept {
  switch (event) {
    case E::part_called: return to(S::parting);
    case E::goodbye_seen: return to(S::left);
    case E::post_failed: return to(S::failed);
    case E::loss_known: return to(S::ended, A::report_lost);
    case E::released: break;
  }
  return to(S::ended);
}

EndingStep from_parting(E event) noexcept {
  switch (event) {
    case E::part_called: return to(S::parting);
    case E::goodbye_seen: return to(S::left);
    case E::post_failed: return to(S::failed_expected);
    case E::loss_known:
    case E::released: break;
  }
  return to(S::ended);
}

EndingStep from_left(E event) noexcept {
  switch (event) {
    case E::part_called:
    case E::goodbye_seen: return to(S::left);
    case E::post_failed: return to(S::failed_expected);
    case E::loss_known:
    case E::released: break;
  }
  return to(S::ended);
}

EndingStep from_failed(E event) noexcept {
  switch (event) {
    case E::part_called:
    case E::goodbye_seen: return to(S::failed_expected);
    case E::post_failed: return to(S::failed);
    case E::loss_known: return to(S::ended, A::report_lost);
    case E::released: break;
  }
  return to(S::ended);
}

EndingStep from_failed_expected(E event) noexcept {
  switch (event) {
    case E::part_called:
    case E::goodbye_seen:
    case E::post_failed: return to(S::failed_expected);
    case E::loss_known:
    case E::released: break;
  }
  return to(S::ended);
}

EndingStep from_ended(E event) noexcept {
  switch (event) {
    case E::part_called:
    case E::goodbye_seen:
    case E::post_failed:
    case E::loss_known:
    case E::released: break;
  }
  return to(S::ended);
}

}  // namespace

EndingStep step(EndingState now, EndingEvent event) noexcept {
  switch (now) {
    case S::used: return from_used(event);
    case S::parting: return from_parting(event);
    case S::left: return from_left(event);
    case S::failed: return from_failed(event);
    case S::failed_expected: return from_failed_expected(event);
    case S::ended: return from_ended(event);
  }
  return to(now);
}

}  // namespace overlap::ring
