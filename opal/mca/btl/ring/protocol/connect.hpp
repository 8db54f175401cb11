// Who connects when both want to (P2.7).
#pragma once

#include <cstdint>

namespace overlap::ring {

enum class ConnectState : std::uint8_t {
  idle,        ///< nothing was needed yet
  connecting,  ///< our request is out
  accepting,   ///< the connection will be the one that the peer asks for
  established,
  failed,
};
enum class ConnectEvent : std::uint8_t {
  want,               ///< there is something to send
  request,            ///< the peer asks for a connection
  our_established,    ///< the one that we have asked for
  their_established,  ///< the one that we have accepted
  rejected,           ///< the peer has rejected a request of ours
  lost,               ///< unreachable, or the connection has ended
};
enum class ConnectAction : std::uint8_t {
  none,
  connect,               ///< make a queue pair and ask for a connection
  accept,                ///< make a queue pair and accept the request
  reject,                ///< the request at hand
  drop_ours_and_accept,  ///< give our own request up (its queue pair goes), then accept
  flush_queue,           ///< send what has waited
  report_lost,           ///< to those above
};
struct ConnectStep {
  ConnectState next;
  ConnectAction action;
  bool legal;
};

/// Advance the connection to one peer. When two requests cross, that of the process with the smaller id wins.
///
///   state          want                request                   our_established    their_established  rejected         lost
///   idle           connecting connect  accepting accept          -                  -                  -                -
///   connecting, S  connecting          connecting reject         established flush  -                  failed report    failed report
///   connecting, L  connecting          accepting drop and accept established flush  -                  accepting (a)    failed report
///   accepting      accepting           accepting accept (a)      -                  established flush  accepting (b)    failed report
///   established    established         established reject (b)    -                  -                  established (b)  failed report
///   failed         failed report       failed reject             failed (c)         failed (c)         failed (c)       failed
///   S: mine is smaller, L: mine is larger
///   (a) the larger one is rejected only because a request of the smaller one is under way: that one is waited for
///   (b) about the request of ours that was dropped: it arrives at the smaller one late, or its answer here
///   (c) came while the connection was being given up
///   '-' is illegal and changes nothing
/// @source  P2.7
[[nodiscard]] ConnectStep step(ConnectState now, ConnectEvent event, bool mine_is_smaller) noexcept;

}  // namespace overlap::ring
