// The life of a connection: one function per state.
// SPDX-License-Identifier: BSD-3-Clause
#include "connection_state.hpp"

namespace overlap::fabric::verbs {
namespace {

using S = ConnectionState;
using E = ConnectionEvent;
using A = ConnectionAction;

constexpr ConnectionStep illegal(S now) { return {now, A::none, false}; }

ConnectionStep from_fresh(E event) {
  switch (event) {
    case E::connect_called: return {S::resolving_address, A::resolve_address, true};
    case E::accept_called: return {S::accepting, A::send_answer, true};
    case E::address_resolved:
    case E::route_resolved:
    case E::response:
    case E::established:
    case E::data_arrived:
    case E::rejected:
    case E::failed:
    case E::disconnected: return illegal(S::fresh);
  }
  return illegal(S::fresh);
}

ConnectionStep from_resolving_address(E event) {
  switch (event) {
    case E::address_resolved: return {S::resolving_route, A::resolve_route, true};
    case E::failed: return {S::ended, A::report_unreachable, true};
    case E::connect_called:
    case E::accept_called:
    case E::route_resolved:
    case E::response:
    case E::established:
    case E::data_arrived:
    case E::rejected:
    case E::disconnected: return illegal(S::resolving_address);
  }
  return illegal(S::resolving_address);
}

ConnectionStep from_resolving_route(E event) {
  switch (event) {
    case E::route_resolved: return {S::connecting, A::send_request, true};
    case E::failed: return {S::ended, A::report_unreachable, true};
    case E::connect_called:
    case E::accept_called:
    case E::address_resolved:
    case E::response:
    case E::established:
    case E::data_arrived:
    case E::rejected:
    case E::disconnected: return illegal(S::resolving_route);
  }
  return illegal(S::resolving_route);
}

ConnectionStep from_connecting(E event) {
  switch (event) {
    case E::response: return {S::connecting, A::finish, true};
    case E::established:
    case E::data_arrived: return {S::established, A::report_established, true};
    case E::rejected: return {S::ended, A::report_rejected, true};
    case E::failed:
    case E::disconnected: return {S::ended, A::report_unreachable, true};
    case E::connect_called:
    case E::accept_called:
    case E::address_resolved:
    case E::route_resolved: return illegal(S::connecting);
  }
  return illegal(S::connecting);
}

ConnectionStep from_accepting(E event) {
  switch (event) {
    case E::established:
    case E::data_arrived: return {S::established, A::report_established, true};
    case E::rejected:
    case E::failed:
    case E::disconnected: return {S::ended, A::report_unreachable, true};
    case E::connect_called:
    case E::accept_called:
    case E::address_resolved:
    case E::route_resolved:
    case E::response: return illegal(S::accepting);
  }
  return illegal(S::accepting);
}

ConnectionStep from_established(E event) {
  switch (event) {
    case E::established:
    case E::data_arrived: return {S::established, A::none, true};
    case E::rejected:
    case E::failed:
    case E::disconnected: return {S::ended, A::report_lost, true};
    case E::connect_called:
    case E::accept_called:
    case E::address_resolved:
    case E::route_resolved:
    case E::response: return illegal(S::established);
  }
  return illegal(S::established);
}

ConnectionStep from_ended(E event) {
  switch (event) {
    case E::address_resolved:
    case E::route_resolved:
    case E::response:
    case E::established:
    case E::data_arrived:
    case E::rejected:
    case E::failed:
    case E::disconnected: return {S::ended, A::none, true};
    case E::connect_called:
    case E::accept_called: return illegal(S::ended);
  }
  return illegal(S::ended);
}

}  // namespace

ConnectionStep step(ConnectionState now, ConnectionEvent event) noexcept {
  switch (now) {
    case S::fresh: return from_fresh(event);
    case S::resolving_address: return from_resolving_address(event);
    case S::resolving_route: return from_resolving_route(event);
    case S::connecting: return from_connecting(event);
    case S::accepting: return from_accepting(event);
    case S::established: return from_established(event);
    case S::ended: return from_ended(event);
  }
  return illegal(now);
}

}  // namespace overlap::fabric::verbs
