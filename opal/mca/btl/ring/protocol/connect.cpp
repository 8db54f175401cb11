// The connection's machine, one function for each source state.
#include "connect.hpp"

namespace overlap::ring {

namespace {

using S = ConnectState;
using E = ConnectEvent;
using A = ConnectAction;

constexpr ConnectStep legal(S next, A action = A::none) { return {next, action, true}; }
constexpr ConnectStep illegal(S now) { return {now, A::none, false}; }

ConnectStep from_idle(E event) noexcept {
  switch (event) {
    case E::want: return legal(S::connecting, A::connect);
    case E::request: return legal(S::accepting, A::accept);
    case E::our_established:
    case E::their_established:
    case E::rejected:
    case E::lost: break;
  }
  return illegal(S::idle);
}

ConnectStep from_connecting(E event, bool mine_is_smaller) noexcept {
  switch (event) {
    case E::want: return legal(S::connecting);
    case E::request:
      return mine_is_smaller ? legal(S::connecting, A::reject)
                             : legal(S::accepting, A::drop_ours_and_accept);
    case E::our_established: return legal(S::established, A::flush_queue);
    case E::rejected:
      return mine_is_smaller ? legal(S::failed, A::report_lost) : legal(S::accepting);
    case E::lost: return legal(S::failed, A::report_lost);
    case E::their_established: break;
  }
  return illegal(S::connecting);
}

ConnectStep from_accepting(E event) noexcept {
  switch (event) {
    case E::want:
    case E::rejected: return legal(S::accepting);
    case E::request: return legal(S::accepting, A::accept);
    case E::their_established: return legal(S::established, A::flush_queue);
    case E::lost: return legal(S::failed, A::report_lost);
    case E::our_established: break;
  }
  return illegal(S::accepting);
}

ConnectStep from_established(E event) noexcept {
  switch (event) {
    case E::want:
    case E::rejected: return legal(S::established);
    case E::request: return legal(S::established, A::reject);
    case E::lost: return legal(S::failed, A::report_lost);
    case E::our_established:
    case E::their_established: break;
  }
  return illegal(S::established);
}

ConnectStep from_failed(E event) noexcept {
  switch (event) {
    case E::want: return legal(S::failed, A::report_lost);
    case E::request: return legal(S::failed, A::reject);
    case E::our_established:
    case E::their_established:
    case E::rejected:
    case E::lost: break;
  }
  return legal(S::failed);
}

}  // namespace

ConnectStep step(ConnectState now, ConnectEvent event, bool mine_is_smaller) noexcept {
  switch (now) {
    case S::idle: return from_idle(event);
    case S::connecting: return from_connecting(event, mine_is_smaller);
    case S::accepting: return from_accepting(event);
    case S::established: return from_established(event);
    case S::failed: return from_failed(event);
  }
  return illegal(now);
}

}  // namespace overlap::ring
