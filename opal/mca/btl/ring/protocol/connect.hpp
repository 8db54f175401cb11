// Who connects when both want to, and when to try again (P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

enum class ConnectState : std::uint8_t {
  idle,         ///< nothing was needed yet, or an attempt failed that nothing waits for
  connecting,   ///< our request is out
  accepting,    ///< the peer's request has been accepted
  backing_off,  ///< an attempt has failed: the next one comes when its time has come
  established,
  failed,  ///< for good: an established connection has ended, or the device has failed
};
enum class ConnectEvent : std::uint8_t {
  want,               ///< there is something to send
  request,            ///< the peer asks for a connection
  stale_request,      ///< the same, older than one that was seen: its maker has given it up
  our_established,    ///< the one that we have asked for
  their_established,  ///< the one that we have accepted
  lost,               ///< rejected, unreachable, timed out, or an established connection has ended
  due,                ///< the time to wait between two attempts is over
  device_failed,      ///< the device cannot even try, now and in future
};
enum class ConnectAction : std::uint8_t {
  none,
  connect,          ///< make a queue pair and ask for a connection
  accept,           ///< make a queue pair and accept the request
  reject,           ///< the request at hand
  drop_and_accept,  ///< give the attempt under way up (its queue pair goes), then accept
  drop,             ///< give the attempt up
  drop_and_wait,    ///< give the attempt up and set the clock for the next one
  flush_queue,      ///< send what has waited
  report_lost,      ///< to the upper layer
};
struct ConnectStep {
  ConnectState next;
  ConnectAction action;
  bool legal;
};

/// What a step depends on besides state and event.
struct ConnectView {
  bool mine_is_smaller;  ///< our process id; when two requests cross, that of the smaller one wins
  bool needed;           ///< something waits for the connection
};

/// Queue pairs that the device may refuse in a row before the connection has failed for good:
/// fifteen to twenty-five seconds with what lies between attempts.
inline constexpr std::uint32_t refusals_max = 12;

/// Advance the connection to one peer. Events of queue pairs that were given up do not come here.
///
///   idle --want--> connecting --our_established--> established --lost--> failed
///    ^ \--request--> accepting --their_established--^
///    |                  |  connecting, accepting --lost--> backing_off --due--> connecting
///    +--lost, not needed+
///
///   event \ state      idle                connecting, S       connecting, L
///   want               connecting connect  connecting          connecting
///   request            accepting accept    connecting reject   accepting drop and accept
///   stale_request      idle reject         connecting reject   connecting reject
///   our_established    -                   established flush   established flush
///   their_established  -                   -                   -
///   lost               -                   (a)                 (a)
///   due                -                   -                   -
///   device_failed      -                   failed report       failed report
///
///   event \ state      accepting                  backing_off       established         failed
///   want               accepting                  backing_off       established         (d)
///   request            accepting drop&accept (b)  accepting accept  established reject  (e)
///   stale_request      accepting reject           backing_off (e)   established reject  (e)
///   our_established    -                          -                 -                   -
///   their_established  established flush          -                 -                   -
///   lost               (a)                        -                 failed report       failed
///   due                -                          (c)               -                   -
///   device_failed      failed report              -                 -                   -
///   S: mine is smaller, L: mine is larger
///   (a) needed: backing_off, drop and wait; otherwise idle, drop
///   (b) the peer has given up the request that we had accepted
///   (c) needed: connecting, connect; otherwise idle
///   (d) failed, report
///   (e) the request is rejected, the state stays
///   '-' is illegal and changes nothing
/// @source  P2.7
[[nodiscard]] ConnectStep step(ConnectState now, ConnectEvent event, ConnectView view) noexcept;

/// Time to wait after failure number `failures` (from 1) of one connection: doubled each time, up
/// to a limit, and spread so that many processes do not come back together.
/// @param salt  differs from process to process
/// @returns  in [base * 3/4, limit * 5/4)
[[nodiscard]] std::uint32_t back_off_ms(std::uint32_t failures, std::uint32_t salt) noexcept;

inline constexpr std::uint32_t back_off_first_ms = 20;
inline constexpr std::uint32_t back_off_last_ms = 5000;

}  // namespace overlap::ring
