// May a request be executed at its responder?
// SPDX-License-Identifier: BSD-3-Clause
#include "admission.hpp"

#include <algorithm>
#include <utility>

namespace overlap::fabric::soft {
namespace {

/// Between two tries of a message that finds no receive entry.
[[nodiscard]] Time retry_ns(const Pair& pair) noexcept {
  return pair.peer->client->retry.receive_retry_ns + 2 * pair.wire.latency_ns;
}

}  // namespace

Admitted Admission::admit(Pair& pair, Task& task) {
  CompletionStatus status = std::exchange(pair.faults.fail_next, CompletionStatus::success);
  if (status == CompletionStatus::success) status = access_.check_remote(pair, task);
  if (status == CompletionStatus::success && task.takes_receive()) {
    if (const Admitted outcome = admit_receive(pair, task); outcome != Admitted::granted)
      return outcome;
  }
  if (status == CompletionStatus::success && task.is_atomic()) {
    const Moved moved = mover_.move_atomic(pair, task);
    if (moved.kind == Moved::Kind::held) return Admitted::waits;
    status = moved.fault;
  }
  if (status != CompletionStatus::success) {
    failures_.refuse_task(pair, task, status);
    return Admitted::failed;
  }
  task.admitted = true;
  return Admitted::granted;
}

Admitted Admission::admit_receive(Pair& pair, Task& task) {
  Pair& peer = *pair.peer;
  Receives* receives = peer.receives;
  if (receives == nullptr || (receives->managed && receives->taken >= receives->enabled_end) ||
      !host_.take_receive(*receives, task.receive))
    return receive_not_ready(pair, task);
  ++receives->taken;
  pair.not_ready_since = never;
  task.holds_receive = true;
  const CompletionStatus fault = access_.check_receive(peer, task);
  if (fault == CompletionStatus::success) return Admitted::granted;
  failures_.fail_receive(pair, task, fault);
  return Admitted::failed;
}

/// No receive entry: the message is sent again after the receiver's time, so often as the sender's
/// settings allow. Trying again costs the wire nothing here.
Admitted Admission::receive_not_ready(Pair& pair, Task& task) {
  const RetrySettings& own = pair.client->retry;
  if (pair.not_ready_since == never) pair.not_ready_since = schedule_.now();
  const bool limited = own.receive_retries != RetrySettings::for_ever;
  const Time last_try = pair.not_ready_since + retry_ns(pair) * own.receive_retries;
  if (limited && schedule_.now() >= last_try) {
    failures_.refuse_task(pair, task, CompletionStatus::receive_not_ready_exceeded);
    return Admitted::failed;
  }
  // Between the tries nothing changes as long as nobody posts: only the last one has to be made.
  Receives* receives = pair.peer->receives;
  wait(pair.arrive_waiter, receives != nullptr ? receives->posted : pair.resumed);
  if (limited) schedule_.set_visible(pair.again_timer, last_try);
  return Admitted::waits;
}

void Admission::try_again_later(Pair& pair) {
  if (pair.not_ready_since == never || pair.peer == nullptr) return;
  const Time between = retry_ns(pair);
  const Time tries = (schedule_.now() - pair.not_ready_since + between - 1) / between;
  schedule_.set_visible(pair.again_timer,
                        pair.not_ready_since + std::max<Time>(tries, 1) * between);
}

}  // namespace overlap::fabric::soft
