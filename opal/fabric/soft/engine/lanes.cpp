// From a queue pair onto the wire and off it.
// SPDX-License-Identifier: BSD-3-Clause
#include "lanes.hpp"

#include <algorithm>

namespace overlap::fabric::soft {

void Lanes::send_request(Pair& pair, std::uint64_t task, std::uint64_t bytes) {
  start(pair, pair.out, task, bytes);
}

void Lanes::send_response(Pair& pair) {
  if (pair.back.flow.active() || pair.responses.empty()) return;
  const std::uint64_t number = pair.responses.front();
  pair.responses.pop_front();
  start(pair, pair.back, number, pair.task(number).total_bytes);
}

void Lanes::start(Pair& pair, Lane& lane, std::uint64_t task, std::uint64_t bytes) {
  Node& own = *pair.client->node;
  Node& other = *pair.peer->client->node;
  const bool towards_peer = &lane == &pair.out;
  lane.flow.task = task;
  wire_.start(lane.flow, towards_peer ? own : other, towards_peer ? other : own, pair.wire, bytes,
              schedule_.now());
  if (own.down || other.down) watch_link(pair);
}

bool Lanes::mark_reached(Pair& pair, Lane& lane) {
  Flow& flow = lane.flow;
  const PairFaults& faults = pair.faults;
  Time at = schedule_.now() + pair.wire.latency_ns + (&lane == &pair.out ? faults.delay_ns : 0);
  if (!lane.arrivals.empty())
    at = std::max(at, lane.arrivals.back().at);  // a delay that was taken back does not reorder
  const bool torn = &lane == &pair.out && faults.tear_ns > 0 && flow.total_bytes() > 1 &&
                    flow.mark_bytes() == flow.total_bytes() && !pair.task(flow.task).is_read();
  if (torn) {
    lane.arrivals.push_back({at, flow.task, flow.mark_bytes() - 1});
    at += faults.tear_ns;
  }
  lane.arrivals.push_back({at, flow.task, flow.mark_bytes()});
  schedule_arrival(lane);
  if (flow.mark_bytes() < flow.total_bytes()) {
    wire_.next_mark(flow, schedule_.now());
    return false;
  }
  wire_.stop(flow, schedule_.now());
  return true;
}

void Lanes::schedule_arrival(Lane& lane) {
  if (lane.arrivals.empty() || lane.timer.armed()) return;
  Pair& pair = *lane.timer.owner;
  const Arrival& first = lane.arrivals.front();
  // A read request shows nothing when it arrives; its response does, one latency later.
  const bool hidden = &lane == &pair.out && pair.task(first.task).request().opcode == Opcode::read;
  if (hidden) {
    schedule_.set_hidden(lane.timer, first.at);
  } else {
    schedule_.set_visible(lane.timer, first.at);
  }
}

void Lanes::halt(Lane& lane) {
  Pair& pair = *lane.timer.owner;
  wire_.stop(lane.flow, schedule_.now());
  TimerHeap::clear(lane.timer);
  lane.arrivals.clear();
  lane.moving = false;
  std::erase_if(backlog_, [&](const Moving& moving) { return moving.lane == &lane; });
  if (&lane == &pair.back) pair.responses.clear();
}

void Lanes::watch_link(Pair& pair) {
  const bool down = pair.state == PairState::established &&
                    (pair.client->node->down || pair.peer->client->node->down);
  if (!down) return TimerHeap::clear(pair.give_up_timer);
  bool waits = false;
  for (std::uint64_t number = pair.retired; number < pair.started; ++number)
    waits |= !pair.task(number).done;
  if (waits && !pair.give_up_timer.armed())
    schedule_.set_visible(pair.give_up_timer, schedule_.now() + pair.client->retry.answer_ns);
}

Moving Lanes::take_moving() {
  const Moving moving = backlog_.front();
  backlog_.pop_front();
  return moving;
}

}  // namespace overlap::fabric::soft
