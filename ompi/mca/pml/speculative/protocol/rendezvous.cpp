// Transition tables of the rendezvous machines, one function per source state.
// SPDX-License-Identifier: BSD-3-Clause
#include "rendezvous.hpp"

namespace overlap::speculative {
namespace {

constexpr SendStep illegal(SendState now) noexcept { return {now, SendAction::none, false}; }
constexpr SendStep to(SendState next, SendAction action) noexcept { return {next, action, true}; }
constexpr ReceiveStep illegal(ReceiveState now) noexcept {
  return {now, ReceiveAction::none, false};
}
constexpr ReceiveStep to(ReceiveState next, ReceiveAction action) noexcept {
  return {next, action, true};
}

/// What a send that nobody has heard of does.
SendStep from_start(SendState now, SendEvent event) noexcept {
  switch (event) {
    case SendEvent::defer:
      return now == SendState::idle ? to(SendState::deferred, SendAction::none) : illegal(now);
    case SendEvent::no_rtr: return to(SendState::waiting, SendAction::send_rts);
    case SendEvent::rtr_memory: return to(SendState::unannounced, SendAction::start_write);
    case SendEvent::rtr_push: return to(SendState::pushing, SendAction::send_rtr_ack_and_push);
    case SendEvent::done:
    case SendEvent::grant_memory:
    case SendEvent::grant_push:
    case SendEvent::write_posted:
    case SendEvent::write_chained:
    case SendEvent::write_done:
    case SendEvent::write_refused:
    case SendEvent::push_done: break;
  }
  return illegal(now);
}

SendStep from_waiting(SendEvent event) noexcept {
  switch (event) {
    case SendEvent::done: return to(SendState::idle, SendAction::complete);
    case SendEvent::grant_memory: return to(SendState::writing, SendAction::start_write);
    case SendEvent::grant_push: return to(SendState::pushing, SendAction::start_push);
    case SendEvent::defer:
    case SendEvent::no_rtr:
    case SendEvent::rtr_memory:
    case SendEvent::rtr_push:
    case SendEvent::write_posted:
    case SendEvent::write_chained:
    case SendEvent::write_done:
    case SendEvent::write_refused:
    case SendEvent::push_done: break;
  }
  return illegal(SendState::waiting);
}

SendStep from_unannounced(SendEvent event) noexcept {
  switch (event) {
    case SendEvent::write_posted: return to(SendState::writing, SendAction::send_rtr_ack);
    case SendEvent::write_chained: return to(SendState::chained, SendAction::send_rtr_ack);
    case SendEvent::write_done: return to(SendState::idle, SendAction::send_rtr_ack_done);
    case SendEvent::write_refused: return to(SendState::pushing, SendAction::send_rtr_ack_and_push);
    case SendEvent::defer:
    case SendEvent::no_rtr:
    case SendEvent::rtr_memory:
    case SendEvent::rtr_push:
    case SendEvent::done:
    case SendEvent::grant_memory:
    case SendEvent::grant_push:
    case SendEvent::push_done: break;
  }
  return illegal(SendState::unannounced);
}

SendStep from_writing(SendEvent event) noexcept {
  switch (event) {
    case SendEvent::write_posted: return to(SendState::writing, SendAction::none);
    case SendEvent::write_chained: return to(SendState::chained, SendAction::none);
    case SendEvent::write_done: return to(SendState::idle, SendAction::send_done);
    case SendEvent::write_refused: return to(SendState::pushing, SendAction::start_push);
    case SendEvent::defer:
    case SendEvent::no_rtr:
    case SendEvent::rtr_memory:
    case SendEvent::rtr_push:
    case SendEvent::done:
    case SendEvent::grant_memory:
    case SendEvent::grant_push:
    case SendEvent::push_done: break;
  }
  return illegal(SendState::writing);
}

SendStep from_chained(SendEvent event) noexcept {
  switch (event) {
    case SendEvent::write_done: return to(SendState::idle, SendAction::complete);
    case SendEvent::write_refused: return to(SendState::chained, SendAction::break_off);
    case SendEvent::defer:
    case SendEvent::no_rtr:
    case SendEvent::rtr_memory:
    case SendEvent::rtr_push:
    case SendEvent::done:
    case SendEvent::grant_memory:
    case SendEvent::grant_push:
    case SendEvent::write_posted:
    case SendEvent::write_chained:
    case SendEvent::push_done: break;
  }
  return illegal(SendState::chained);
}

SendStep from_pushing(SendEvent event) noexcept {
  switch (event) {
    case SendEvent::push_done: return to(SendState::idle, SendAction::complete);
    case SendEvent::defer:
    case SendEvent::no_rtr:
    case SendEvent::rtr_memory:
    case SendEvent::rtr_push:
    case SendEvent::done:
    case SendEvent::grant_memory:
    case SendEvent::grant_push:
    case SendEvent::write_posted:
    case SendEvent::write_chained:
    case SendEvent::write_done:
    case SendEvent::write_refused: break;
  }
  return illegal(SendState::pushing);
}

/// What every unmatched receive does when a message reaches it; `false` when `event` is not an
/// arrival.
bool arrival(ReceiveEvent event, ReceiveStep& step) noexcept {
  switch (event) {
    case ReceiveEvent::eager: step = to(ReceiveState::idle, ReceiveAction::complete); return true;
    case ReceiveEvent::rts:
      step = to(ReceiveState::reading, ReceiveAction::start_read);
      return true;
    case ReceiveEvent::rts_nothing:
      step = to(ReceiveState::idle, ReceiveAction::send_done);
      return true;
    case ReceiveEvent::post:
    case ReceiveEvent::offer:
    case ReceiveEvent::take_back:
    case ReceiveEvent::rtr_ack:
    case ReceiveEvent::read_chained:
    case ReceiveEvent::read_done:
    case ReceiveEvent::read_refused:
    case ReceiveEvent::all_here:
    case ReceiveEvent::cancel:
    case ReceiveEvent::revoked:
    case ReceiveEvent::cancel_alone:
    case ReceiveEvent::redirected:
    case ReceiveEvent::collected:
    case ReceiveEvent::haunt:
    case ReceiveEvent::gather: return false;
  }
  return false;
}

ReceiveStep unmatched(ReceiveState now, ReceiveEvent event) noexcept {
  ReceiveStep result = illegal(now);
  if (arrival(event, result)) return result;
  if (now == ReceiveState::idle && event == ReceiveEvent::post)
    return to(ReceiveState::queued, ReceiveAction::none);
  if (now == ReceiveState::queued && event == ReceiveEvent::offer)
    return to(ReceiveState::offered, ReceiveAction::send_rtr);
  if (now == ReceiveState::queued && event == ReceiveEvent::cancel) {
    return to(ReceiveState::idle, ReceiveAction::complete_cancelled);
  }
  if (now == ReceiveState::offered && event == ReceiveEvent::take_back)
    return to(ReceiveState::queued, ReceiveAction::none);
  if (now == ReceiveState::offered && event == ReceiveEvent::cancel) {
    return to(ReceiveState::revoking, ReceiveAction::send_revoke);
  }
  if (now == ReceiveState::revoking && event == ReceiveEvent::revoked) {
    return to(ReceiveState::idle, ReceiveAction::complete_cancelled);
  }
  if ((now == ReceiveState::offered || now == ReceiveState::revoking) &&
      event == ReceiveEvent::rtr_ack) {
    return to(ReceiveState::incoming, ReceiveAction::none);
  }
  if (now == ReceiveState::offered && event == ReceiveEvent::cancel_alone)
    return to(ReceiveState::idle, ReceiveAction::revoke_and_cancel);
  if ((now == ReceiveState::queued || now == ReceiveState::offered) &&
      event == ReceiveEvent::redirected) {
    return to(ReceiveState::incoming, ReceiveAction::none);
  }
  if (now == ReceiveState::idle && event == ReceiveEvent::collected)
    return to(ReceiveState::incoming, ReceiveAction::none);
  if (now == ReceiveState::idle && event == ReceiveEvent::haunt)
    return to(ReceiveState::ghost, ReceiveAction::none);
  if (now == ReceiveState::idle && event == ReceiveEvent::gather)
    return to(ReceiveState::collecting, ReceiveAction::send_grant);
  return result;
}

ReceiveStep from_reading(ReceiveEvent event) noexcept {
  if (event == ReceiveEvent::read_chained) return to(ReceiveState::chained, ReceiveAction::none);
  if (event == ReceiveEvent::read_done) return to(ReceiveState::idle, ReceiveAction::send_done);
  if (event == ReceiveEvent::read_refused)
    return to(ReceiveState::granted, ReceiveAction::send_grant);
  return illegal(ReceiveState::reading);
}

ReceiveStep from_chained(ReceiveEvent event) noexcept {
  if (event == ReceiveEvent::read_done) return to(ReceiveState::idle, ReceiveAction::complete);
  if (event == ReceiveEvent::read_refused)
    return to(ReceiveState::chained, ReceiveAction::break_off);
  return illegal(ReceiveState::chained);
}

ReceiveStep from_ghost(ReceiveState now, ReceiveEvent event) noexcept {
  if (now == ReceiveState::ghost && event == ReceiveEvent::rtr_ack)
    return to(ReceiveState::collecting, ReceiveAction::none);
  if (now == ReceiveState::ghost && event == ReceiveEvent::revoked)
    return to(ReceiveState::idle, ReceiveAction::none);
  if (now == ReceiveState::collecting && event == ReceiveEvent::all_here)
    return to(ReceiveState::idle, ReceiveAction::none);
  return illegal(now);
}

ReceiveStep from_written(ReceiveState now, ReceiveEvent event) noexcept {
  if (event == ReceiveEvent::all_here) return to(ReceiveState::idle, ReceiveAction::complete);
  return illegal(now);
}

}  // namespace

SendStep step(SendState now, SendEvent event) noexcept {
  switch (now) {
    case SendState::idle:
    case SendState::deferred: return from_start(now, event);
    case SendState::waiting: return from_waiting(event);
    case SendState::unannounced: return from_unannounced(event);
    case SendState::writing: return from_writing(event);
    case SendState::chained: return from_chained(event);
    case SendState::pushing: return from_pushing(event);
  }
  return illegal(now);
}

ReceiveStep step(ReceiveState now, ReceiveEvent event) noexcept {
  switch (now) {
    case ReceiveState::idle:
    case ReceiveState::queued:
    case ReceiveState::offered:
    case ReceiveState::revoking: return unmatched(now, event);
    case ReceiveState::reading: return from_reading(event);
    case ReceiveState::chained: return from_chained(event);
    case ReceiveState::granted:
    case ReceiveState::incoming: return from_written(now, event);
    case ReceiveState::ghost:
    case ReceiveState::collecting: return from_ghost(now, event);
  }
  return illegal(now);
}

}  // namespace overlap::speculative
