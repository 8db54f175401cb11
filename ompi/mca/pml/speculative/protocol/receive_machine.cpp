// The steps of receives.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_machine.hpp"

#include <cassert>
#include <utility>

namespace overlap::speculative {

void ReceiveMachine::advance(ReceiveOp& op, ReceiveEvent event) {
  const ReceiveStep next = step(op.state, event);
  assert(next.legal);
  if (!next.legal) return;
  op.state = next.next;
  perform(op, next.action);
}

void ReceiveMachine::check_all_here(ReceiveOp& op) {
  if (op.data_done || op.arrived_bytes >= op.coming_bytes) advance(op, ReceiveEvent::all_here);
}

void ReceiveMachine::close(ReceiveOp& op) noexcept {
  if (op.handle != 0) receives_.remove(std::exchange(op.handle, 0));
}

void ReceiveMachine::rebind(Handle handle, ReceiveOp& op) noexcept {
  op.handle = handle;
  receives_.rebind(handle, op);
}

void ReceiveMachine::perform(ReceiveOp& op, ReceiveAction action) {
  switch (action) {
    case ReceiveAction::none: break;
    case ReceiveAction::send_rtr: send_rtr(op); break;
    case ReceiveAction::start_read: outbox_.emit(Action::Kind::read).receive = &op; break;
    case ReceiveAction::send_grant: send_grant(op); break;
    case ReceiveAction::send_done:
      outbox_.emit_control(*op.peer, done_header(op)).receive = &op;
      finish(op, Action::Kind::complete_receive);
      break;
    case ReceiveAction::send_revoke: send_revoke(op, 0); break;
    case ReceiveAction::revoke_and_cancel:
      send_revoke(op, flag::nobody_waits);
      finish(op, Action::Kind::complete_cancelled);
      break;
    case ReceiveAction::complete: finish(op, Action::Kind::complete_receive); break;
    case ReceiveAction::complete_cancelled: finish(op, Action::Kind::complete_cancelled); break;
    case ReceiveAction::break_off: outbox_.emit(Action::Kind::break_off).receive = &op; break;
  }
}

void ReceiveMachine::send_rtr(ReceiveOp& op) {
  RtrHeader rtr{};
  rtr.head = Outbox::reverse_head(Kind::rtr, *op.peer, op.tag);
  if (policy_ == HazardPolicy::eager_flag) rtr.head.flags = flag::acknowledging;
  rtr.capacity_bytes = op.capacity_bytes;
  rtr.receive = op.handle;
  rtr.base_sequence = op.peer->expected_sequence;
  rtr.index = static_cast<std::uint16_t>(op.position - op.peer->posted.find(op.tag)->position);
  ++counters_.rtr_sent;
  outbox_.emit_control(*op.peer, rtr).receive = &op;
}

void ReceiveMachine::send_grant(ReceiveOp& op) {
  GrantHeader grant{};
  grant.head = {kind_version(Kind::grant), op.found_by_look ? flag::just_missed : std::uint8_t{0},
                0, 0, op.send};
  grant.receive = op.handle;
  grant.length_bytes = op.take_bytes();
  // A ghost has no request, and no memory to name.
  outbox_.emit_control(*op.peer, grant).receive =
      op.state == ReceiveState::collecting ? nullptr : &op;
}

void ReceiveMachine::send_revoke(const ReceiveOp& op, std::uint8_t flags) {
  // The envelope may have been forgotten since its RTR went out. What is asked back must be
  // remembered, so it always finds room.
  ++op.peer->receive_envelopes.get(op.tag, unbounded_envelopes)->revokes_out;
  ++counters_.revoke_sent;
  counters_.extra_control_bytes += sizeof(RevokeHeader);
  RevokeHeader revoke{Outbox::reverse_head(Kind::revoke, *op.peer, op.tag)};
  revoke.head.flags = flags;
  outbox_.emit_control(*op.peer, revoke);
}

void ReceiveMachine::finish(ReceiveOp& op, Action::Kind how) {
  close(op);
  op.state = ReceiveState::idle;
  outbox_.emit(how).receive = &op;
}

}  // namespace overlap::speculative
