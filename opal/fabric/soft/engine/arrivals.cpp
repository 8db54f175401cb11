// Both lanes' far ends.
// SPDX-License-Identifier: BSD-3-Clause
#include "arrivals.hpp"

namespace overlap::fabric::soft {

void Arrivals::arrive(Pair& pair) {
  Lane& lane = pair.out;
  while (!lane.arrivals.empty() && lane.arrivals.front().at <= schedule_.now()) {
    if (lane.moving || pair.arrive_waiter.on != nullptr || pair.again_timer.armed()) return;
    if (pair.faults.stalled) return wait(pair.arrive_waiter, pair.resumed);
    const Arrival arrival = lane.arrivals.front();
    Task& task = pair.task(arrival.task);
    if (!task.admitted && admission_.admit(pair, task) != Admitted::granted) return;
    lane.arrivals.pop_front();
    if (task.is_read()) {
      pair.responses.push_back(arrival.task);
      lanes_.send_response(pair);
    } else if (!move(pair, lane, arrival)) {
      return;
    }
  }
  lanes_.schedule_arrival(lane);
}

void Arrivals::come_back(Pair& pair) {
  Lane& lane = pair.back;
  while (!lane.arrivals.empty() && lane.arrivals.front().at <= schedule_.now()) {
    if (lane.moving) return;
    if (pair.faults.stalled) return wait(pair.arrive_waiter, pair.resumed);
    const Arrival arrival = lane.arrivals.front();
    lane.arrivals.pop_front();
    if (!move(pair, lane, arrival)) return;
  }
  lanes_.schedule_arrival(lane);
}

/// Copy what has come, or leave it to move_backlog(). @returns  true: the next arrival may be
/// looked at
bool Arrivals::move(Pair& pair, Lane& lane, const Arrival& arrival) {
  Task& task = pair.task(arrival.task);
  task.available_bytes = arrival.bytes;
  lane.task = arrival.task;
  lane.moving = true;
  if (task.available_bytes - task.moved_bytes > at_once_bytes) {
    lanes_.move_later({&pair, &lane});
    return false;
  }
  if (!move_some(pair, lane)) return false;
  moved(pair, lane);
  return pair.state == PairState::established;
}

void Arrivals::move_backlog() {
  const Moving moving = lanes_.take_moving();
  Pair& pair = *moving.pair;
  Lane& lane = *moving.lane;
  if (!move_some(pair, lane)) return;
  const Task& task = pair.task(lane.task);
  if (task.moved_bytes < task.available_bytes) {
    lanes_.move_later(moving);
    return;
  }
  moved(pair, lane);
  if (pair.state != PairState::established) return;
  if (&lane == &pair.out) {
    arrive(pair);
  } else {
    come_back(pair);
  }
}

/// Copy the next piece; a fault fails the task.
bool Arrivals::move_some(Pair& pair, Lane& lane) {
  Task& task = pair.task(lane.task);
  const Moved outcome = mover_.move_piece(pair, task);
  if (outcome.kind == Moved::Kind::failed) {
    const Time answer_ns = &lane == &pair.out ? pair.wire.latency_ns : 0;
    failures_.fail_task(pair, task, outcome.fault, schedule_.now() + answer_ns, &lane);
  }
  return outcome.kind == Moved::Kind::done;
}

/// What has arrived so far is copied.
void Arrivals::moved(Pair& pair, Lane& lane) {
  lane.moving = false;
  Task& task = pair.task(lane.task);
  if (task.moved_bytes < task.total_bytes) return;
  if (&lane == &pair.out) {
    delivery_.deliver(pair, task);
  } else {
    delivery_.answer(pair, task);
  }
}

}  // namespace overlap::fabric::soft
