// The connection's machine, one function for each source state.
// SPDX-License-Identifier: BSD-3-Clause
#include "connect.hpp"

#include <algorithm>

namespace overlap::ring {

namespace {

using S = ConnectState;
using E = ConnectEvent;
using A = ConnectAction;

constexpr ConnectStep legal(S next, A action = A::none) { return {next, action, true}; }
constexpr ConnectStep illegal(S now) { return {now, A::none, false}; }

ConnectStep attempt_failed(bool needed) noexcept {
  return needed ? legal(S::backing_off, A::drop_and_wait) : legal(S::idle, A::drop);
}

ConnectStep from_idle(E event) noexcept {
  switch (event) {
    case E::want: return legal(S::connecting, A::connect);
    case E::request: return legal(S::accepting, A::accept);
    case E::stale_request: return legal(S::idle, A::reject);
    case E::our_established:
    case E::their_established:
    case E::lost:
    case E::due:
    case E::device_failed: break;
  }
  return illegal(S::idle);
}

ConnectStep from_connecting(E event, ConnectView view) noexcept {
  switch (event) {
    case E::want: return legal(S::connecting);
    case E::request:
      return view.mine_is_smaller ? legal(S::connecting, A::reject)
                                  : legal(S::accepting, A::drop_and_accept);
    case E::stale_request: return legal(S::connecting, A::reject);
    case E::our_established: return legal(S::established, A::flush_queue);
    case E::lost: return attempt_failed(view.needed);
    case E::device_failed: return legal(S::failed, A::report_lost);
    case E::their_established:
    case E::due: break;
  }
  return illegal(S::connecting);
}

ConnectStep from_accepting(E event, bool needed) noexcept {
  switch (event) {
    case E::want: return legal(S::accepting);
    case E::request: return legal(S::accepting, A::drop_and_accept);
    case E::stale_request: return legal(S::accepting, A::reject);
    case E::their_established: return legal(S::established, A::flush_queue);
    case E::lost: return attempt_failed(needed);
    case E::device_failed: return legal(S::failed, A::report_lost);
    case E::our_established:
    case E::due: break;
  }
  return illegal(S::accepting);
}

ConnectStep from_backing_off(E event, bool needed) noexcept {
  switch (event) {
    case E::want: return legal(S::backing_off);
    case E::request: return legal(S::accepting, A::accept);
    case E::stale_request: return legal(S::backing_off, A::reject);
    case E::due: return needed ? legal(S::connecting, A::connect) : legal(S::idle);
    case E::our_established:
    case E::their_established:
    case E::lost:
    case E::device_failed: break;
  }
  return illegal(S::backing_off);
}

ConnectStep from_established(E event) noexcept {
  switch (event) {
    case E::want: return legal(S::established);
    case E::request:
    case E::stale_request: return legal(S::established, A::reject);
    case E::lost: return legal(S::failed, A::report_lost);
    case E::our_established:
    case E::their_established:
    case E::due:
    case E::device_failed: break;
  }
  return illegal(S::established);
}

ConnectStep from_failed(E event) noexcept {
  switch (event) {
    case E::want: return legal(S::failed, A::report_lost);
    case E::request:
    case E::stale_request: return legal(S::failed, A::reject);
    case E::lost: return legal(S::failed);
    case E::our_established:
    case E::their_established:
    case E::due:
    case E::device_failed: break;
  }
  return illegal(S::failed);
}

}  // namespace

ConnectStep step(ConnectState now, ConnectEvent event, ConnectView view) noexcept {
  switch (now) {
    case S::idle: return from_idle(event);
    case S::connecting: return from_connecting(event, view);
    case S::accepting: return from_accepting(event, view.needed);
    case S::backing_off: return from_backing_off(event, view.needed);
    case S::established: return from_established(event);
    case S::failed: return from_failed(event);
  }
  return illegal(now);
}

std::uint32_t back_off_ms(std::uint32_t failures, std::uint32_t salt) noexcept {
  const std::uint32_t doublings = std::min(std::max(failures, 1U) - 1, 8U);
  const std::uint32_t middle = std::min(back_off_first_ms << doublings, back_off_last_ms);
  constexpr std::uint32_t golden = 2654435769U;  // 2^32 / golden ratio: spreads neighbours
  const std::uint32_t spread = ((salt + failures) * golden) >> 16U;  // [0, 2^16)
  return middle - middle / 4 +
         static_cast<std::uint32_t>(std::uint64_t{middle / 2} * spread >> 16U);
}

}  // namespace overlap::ring
