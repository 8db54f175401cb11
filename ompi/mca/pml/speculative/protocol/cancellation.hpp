// Cancelled receives, the RTRs that they leave behind, and messages whose payload comes before a
// receive does.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "communicator.hpp"
#include "ghosts.hpp"
#include "headers.hpp"
#include "host.hpp"
#include "offers.hpp"
#include "operations.hpp"
#include "receive_machine.hpp"
#include "unexpected_messages.hpp"

namespace overlap::speculative {

/// The ghosts of a process. Because an RTR that names no memory may have become one's, it is here
/// that each fragment finds out where it goes.
class Cancellation {
 public:
  /// The arguments outlive the object.
  Cancellation(Host& host, UnexpectedMessages& unexpected, ReceiveMachine& machine, Offers& offers)
      : host_(host), unexpected_(unexpected), machine_(machine), offers_(offers) {}

  void cancel(Communicator& comm, ReceiveOp& op);
  /// @returns  nullptr, or what is impossible about it
  [[nodiscard]] const char* on_revoke_ack(Peer& peer, std::int32_t tag);
  /// The peer uses no RTR any more.
  void stream_ended(const Peer& peer) { lay_ghosts(peer, any_tag); }
  /// The communicator goes, and its unexpected messages with it.
  void forget(const Communicator& comm);

  /// Something else than the use of its RTR is about to match a receive. The RTR is still good for
  /// a later message while ghosts are ahead of it: then a ghost takes it over.
  bool try_leave_ghost(ReceiveOp& op);
  /// Does an RTS that meets no RTR of its own answer one of a cancelled receive? Each is for one
  /// message.
  [[nodiscard]] static bool answers_orphan(ReceiveEnvelope* envelope) noexcept;
  /// A message uses the RTR of a cancelled receive. MPI gives it to the first receive that matches
  /// now; without one it is an unexpected message, and its payload is collected.
  [[nodiscard]] const char* use_ghost(Ghost& ghost, Peer& peer, const RtrAckHeader& ack);
  /// An unexpected RTS becomes a message that is pushed and collected.
  void gather(Arrived& rts);
  /// A receive gets a message of which fragments may still come.
  void receive_collected(Arrived& message, ReceiveOp& op);

  /// A piece of the payload of a message that is matched, or collected.
  [[nodiscard]] const char* take_fragment(ReceiveOp& op, std::uint64_t offset_bytes,
                                          std::span<const std::byte> payload);
  /// A piece that has come before it is known whose it is. @param op  what its handle names now
  [[nodiscard]] const char* put_early_fragment(const ReceiveOp& op, std::uint64_t offset_bytes,
                                               std::span<const std::byte> payload);
  /// It is known now.
  [[nodiscard]] const char* take_early_fragments(Handle handle);

 private:
  [[nodiscard]] static bool may_cancel_alone(ReceiveOp& op) noexcept;
  void leave_ghost(ReceiveOp& op);
  void hand_over(ReceiveOp& op, Ghost& ghost) noexcept;
  void remove(Ghost& ghost) noexcept;
  void lay_ghosts(const Peer& peer, std::int32_t tag);
  [[nodiscard]] const char* collect(Ghost& ghost, Peer& peer, const RtrAckHeader& ack);
  void end_collection(Ghost& ghost);

  Host& host_;
  UnexpectedMessages& unexpected_;
  ReceiveMachine& machine_;
  Offers& offers_;
  Ghosts ghosts_;
  EarlyFragments early_fragments_;
};

}  // namespace overlap::speculative
