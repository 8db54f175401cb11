// The life of a connection, from the first call to its end, as a table. Nothing here needs a
// device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::fabric::verbs {

enum class ConnectionState : std::uint8_t {
  fresh,  ///< a queue pair that was just made
  resolving_address,
  resolving_route,
  connecting,  ///< the request is on its way
  accepting,   ///< the answer is on its way back
  established,
  ended,  ///< for good, with or without having been established
};

enum class ConnectionEvent : std::uint8_t {
  connect_called,
  accept_called,
  address_resolved,
  route_resolved,
  response,  ///< the peer accepts; this side has to finish its queue pair
  established,
  data_arrived,  ///< a message of the peer: it has been established there
  rejected,      ///< the peer called reject()
  failed,        ///< what was under way has failed, or the queue pair has
  disconnected,  ///< the peer, or its process, has gone
};

enum class ConnectionAction : std::uint8_t {
  none,
  resolve_address,
  resolve_route,
  send_request,
  send_answer,
  finish,  ///< make the queue pair ready, then `established` or `failed`
  report_established,
  report_rejected,
  report_unreachable,
  report_lost,
};

struct ConnectionStep {
  ConnectionState next;
  ConnectionAction action;
  bool legal;
};

/// One step. The event is reported to the user exactly once in each life: established at most once,
/// then peer_lost at most once; or rejected or unreachable alone.
///
///   event \ state     fresh      address  route       connecting  accepting  established  ended
///   connect_called    address    -        -           -           -          -            -
///   accept_called     accepting  -        -           -           -          -            -
///   address_resolved  -          route    -           -           -          -            ended*
///   route_resolved    -          -        connecting  -           -          -            ended*
///   response          -          -        -           connecting  -          -            ended*
///   established       -          -        -           estab.      estab.     estab.*      ended*
///   data_arrived      -          -        -           estab.      estab.     estab.*      ended*
///   rejected          -          -        -           ended R     ended U    ended L      ended*
///   failed            -          ended U  ended U     ended U     ended U    ended L      ended*
///   disconnected      -          -        -           ended U     ended U    ended L      ended*
///   address, route: resolving_address, resolving_route; estab.: established
///   U unreachable, R rejected, L lost
///   * nothing to do: the same news by another way, or late; '-' is illegal and changes nothing.
///   connecting, established: iWARP, whose kernel side finishes the queue pair itself.
///   accepting, rejected: the peer gave up.
[[nodiscard]] ConnectionStep step(ConnectionState now, ConnectionEvent event) noexcept;

}  // namespace overlap::fabric::verbs
