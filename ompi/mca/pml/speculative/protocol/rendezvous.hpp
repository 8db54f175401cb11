// The two rendezvous machines: what a large send and a large receive do next (P1.2, P1.3, P1.10).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::speculative {

/// Where a rendezvous send stands.
enum class SendState : std::uint8_t {
  idle,         ///< not started, or finished and reusable
  deferred,     ///< an RTR is expected at any moment; nothing has gone out (P1.14)
  waiting,      ///< RTS is out; the receiver reads, or grants
  unannounced,  ///< an RTR was found and the write is being posted; RTR-ACK has not gone out
  writing,      ///< a write to the receiver's buffer is in flight
  chained,      ///< the same, and DONE is posted behind it
  pushing,      ///< fragments are being sent
};
enum class SendEvent : std::uint8_t {
  defer,          ///< started, an RTR is worth a short wait
  no_rtr,         ///< started, nothing to write to
  rtr_memory,     ///< started, an RTR with an address is at hand
  rtr_push,       ///< started, an RTR without an address is at hand
  done,           ///< the receiver has read everything
  grant_memory,   ///< the receiver cannot read and gives an address
  grant_push,     ///< the receiver cannot read and gives none
  write_posted,   ///< the transport has taken the write, its end comes later
  write_chained,  ///< it has taken all of the write and DONE right behind it
  write_done,     ///< the data is in the receiver's buffer
  write_refused,  ///< the transport cannot write
  push_done,      ///< the last fragment has left the user's buffer
};
enum class SendAction : std::uint8_t {
  none,
  send_rts,
  start_write,
  send_rtr_ack,           ///< the RTR is in use
  send_rtr_ack_done,      ///< the same, and the data is there (both facts in one message)
  send_rtr_ack_and_push,  ///< the RTR is in use, fragments follow
  start_push,
  send_done,  ///< tell the receiver that the write has ended, and complete
  complete,
  break_off,  ///< DONE is behind a write that has failed: nobody can tell any more what the
              ///< receiver has
};
struct SendStep {
  SendState next;
  SendAction action;
  bool legal;
};

/// Advance a rendezvous send.
///
///   state          idle         deferred     waiting  unannounced  writing  chained      pushing
///   defer          deferred     -            -        -            -        -            -
///   no_rtr         waiting      waiting      -        -            -        -            -
///   rtr_memory     unannounced  unannounced  -        -            -        -            -
///   rtr_push       pushing      pushing      -        -            -        -            -
///   done           -            -            idle     -            -        -            -
///   grant_memory   -            -            writing  -            -        -            -
///   grant_push     -            -            pushing  -            -        -            -
///   write_posted   -            -            -        writing      writing  -            -
///   write_chained  -            -            -        chained      chained  -            -
///   write_done     -            -            -        idle         idle     idle         -
///   write_refused  -            -            -        pushing      pushing  chained (*)  -
///   push_done      -            -            -        -            -        -            idle
///   (*) break_off: the job ends;  '-' is illegal and changes nothing
/// @source  P1.2, P1.3; speculative-rendezvous-2009 section 3.2
[[nodiscard]] SendStep step(SendState now, SendEvent event) noexcept;

/// Where a receive stands.
enum class ReceiveState : std::uint8_t {
  idle,      ///< not posted, or finished and reusable
  queued,    ///< in Recvq, no RTR out
  offered,   ///< in Recvq, RTR out
  revoking,  ///< in Recvq, cancelled, the sender has not confirmed yet
  reading,   ///< matched an RTS, a read is in flight
  chained,   ///< the same, and DONE is posted behind it
  granted,   ///< matched an RTS, GRANT is out, the sender writes or pushes
  incoming,  ///< matched an RTR-ACK, the sender writes or pushes
  // Of a ghost, which stands for the RTR of a cancelled receive, or for one that is still to come:
  ghost,       ///< the sender may still use the RTR
  collecting,  ///< it has, and its fragments go to memory of the library
};
enum class ReceiveEvent : std::uint8_t {
  post,          ///< no match was waiting
  offer,         ///< an RTR goes out
  take_back,     ///< the RTR that is out is void
  eager,         ///< matched an eager message
  rts,           ///< matched an RTS
  rts_nothing,   ///< matched an RTS and has no room for a single byte
  rtr_ack,       ///< the sender uses the RTR
  read_chained,  ///< the transport has taken all of the read and DONE right behind it
  read_done,
  read_refused,  ///< the transport cannot read
  all_here,      ///< matched, and every byte is in the buffer
  cancel,
  revoked,       ///< the sender has confirmed that it will not write
  cancel_alone,  ///< its RTR names no memory: a ghost has taken it over
  redirected,    ///< matched an RTR-ACK that names the RTR of a ghost
  collected,     ///< matched a message whose fragments a ghost collects
  haunt,         ///< a ghost takes an RTR over
  gather,        ///< a ghost has the data of an RTS pushed that no receive waits for
};
enum class ReceiveAction : std::uint8_t {
  none,
  send_rtr,
  start_read,
  send_grant,
  send_done,  ///< tell the sender that the data has been read, and complete
  send_revoke,
  revoke_and_cancel,  ///< send_revoke, and complete_cancelled: nothing can reach the buffer
  complete,
  complete_cancelled,
  break_off,  ///< as with sends
};
struct ReceiveStep {
  ReceiveState next;
  ReceiveAction action;
  bool legal;
};

/// Advance a receive.
///
///   state         idle      queued    offered   revoking  reading  chained      granted  incoming
///   post          queued    -         -         -         -        -            -        -
///   offer         -         offered   -         -         -        -            -        -
///   take_back     -         -         queued    -         -        -            -        -
///   eager         idle      idle      idle      idle      -        -            -        -
///   rts           reading   reading   reading   reading   -        -            -        -
///   rts_nothing   idle      idle      idle      idle      -        -            -        -
///   rtr_ack       -         -         incoming  incoming  -        -            -        -
///   read_chained  -         -         -         -         chained  -            -        -
///   read_done     -         -         -         -         idle     idle         -        -
///   read_refused  -         -         -         -         granted  chained (*)  -        -
///   all_here      -         -         -         -         -        -            idle     idle
///   cancel        -         idle      revoking  -         -        -            -        -
///   revoked       -         -         -         idle      -        -            -        -
///   cancel_alone  -         -         idle      -         -        -            -        -
///   redirected    -         incoming  incoming  -         -        -            -        -
///   collected     incoming  -         -         -         -        -            -        -
///
///   A ghost: idle --haunt--> ghost --rtr_ack--> collecting --all_here--> idle
///                              +--revoked--> idle
///            idle --gather (send_grant)--> collecting
///   (*) break_off: the job ends;  '-' is illegal and changes nothing
/// @source  P1.2, P1.3, P1.10; speculative-rendezvous-2009 section 3.2
[[nodiscard]] ReceiveStep step(ReceiveState now, ReceiveEvent event) noexcept;

/// Is a receive in this state in Recvq, so that an arriving message may match it?
[[nodiscard]] constexpr bool is_posted(ReceiveState state) noexcept {
  return state == ReceiveState::queued || state == ReceiveState::offered ||
         state == ReceiveState::revoking;
}

/// Is this no receive, but what stands for one (Ghost)?
[[nodiscard]] constexpr bool is_ghost(ReceiveState state) noexcept {
  return state == ReceiveState::ghost || state == ReceiveState::collecting;
}

/// Has the other side been told where such a receive's buffer is, so that data for it may come?
[[nodiscard]] constexpr bool is_open(ReceiveState state) noexcept {
  return state == ReceiveState::offered || state == ReceiveState::revoking ||
         state == ReceiveState::granted || state == ReceiveState::incoming || is_ghost(state);
}

}  // namespace overlap::speculative
