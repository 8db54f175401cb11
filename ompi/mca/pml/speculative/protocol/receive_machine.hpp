// What each step of a receive's machine sends, and the handles by which senders name receives.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>

#include "communicator.hpp"
#include "counters.hpp"
#include "handle_table.hpp"
#include "hazard_control.hpp"
#include "operations.hpp"
#include "outbox.hpp"
#include "rendezvous.hpp"

namespace overlap::speculative {

/// Takes receives, and the ghosts of cancelled ones, from state to state. It knows nothing of
/// queues: a receive whose step ends its stay there has left its queue before.
class ReceiveMachine {
 public:
  /// The references outlive the object.
  ReceiveMachine(HazardPolicy policy, Counters& counters, Outbox& outbox)
      : policy_(policy), counters_(counters), outbox_(outbox) {}

  void advance(ReceiveOp& op, ReceiveEvent event);
  /// Matched: end it when every byte is in the buffer.
  void check_all_here(ReceiveOp& op);
  static void set_matched(ReceiveOp& op, Peer& peer, std::int32_t tag,
                          std::uint64_t length_bytes) noexcept {
    op.peer = &peer;
    op.matched_source = peer.rank;
    op.matched_tag = tag;
    op.length_bytes = length_bytes;
  }

  [[nodiscard]] ReceiveOp* find(Handle handle) const noexcept { return receives_.find(handle); }
  [[nodiscard]] bool is_stale(Handle handle) const noexcept { return receives_.is_stale(handle); }
  [[nodiscard]] std::size_t open_handles() const noexcept { return receives_.size(); }
  /// Give a receive a handle, unless it has one.
  void open(ReceiveOp& op) {
    if (op.handle == 0) op.handle = receives_.add(op);
  }
  /// Take the handle away, where there is one: what names it from now on is stale.
  void close(ReceiveOp& op) noexcept;
  /// Let a handle that another receive or ghost gave up name this one.
  void rebind(Handle handle, ReceiveOp& op) noexcept;

 private:
  void perform(ReceiveOp& op, ReceiveAction action);
  void finish(ReceiveOp& op, Action::Kind how);
  void send_rtr(ReceiveOp& op);
  void send_grant(ReceiveOp& op);
  void send_revoke(const ReceiveOp& op, std::uint8_t flags);

  HazardPolicy policy_;
  Counters& counters_;
  Outbox& outbox_;
  HandleTable<ReceiveOp> receives_;
};

}  // namespace overlap::speculative
