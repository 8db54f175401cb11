// From the send queue onto the wire.
#include <algorithm>

#include "engine.hpp"

namespace overlap::fabric::soft {

void Engine::begin(Pair& pair) {
  while (pair.state == PairState::established && !pair.failing && pair.started < pair.end()) {
    Task& task = pair.task(pair.started);
    if (!may_start(pair, task)) return;
    const std::uint64_t number = pair.started++;
    if (const CompletionStatus fault = check_local(pair, task);
        fault != CompletionStatus::success) {
      fail_task(pair, task, fault, clock_, nullptr);
      return;
    }
    if (task.is_read()) ++pair.reads_under_way;
    const std::uint64_t bytes = task.request().opcode == Opcode::read ? 0
                                : task.is_atomic()                    ? 2 * sizeof(std::uint64_t)
                                                                      : task.total_bytes;
    put_on_wire(pair, pair.out, number, bytes, true);
  }
}

bool Engine::may_start(Pair& pair, const Task& task) {
  if (pair.out.flow.active() || pair.start_waiter.on != nullptr) return false;
  if (pair.stalled) {
    wait(pair.start_waiter, pair.resumed);
    return false;
  }
  const bool fence_closed = task.request().fenced && pair.reads_under_way > 0;
  const bool too_deep = task.is_read() && pair.reads_under_way >= read_depth;
  if (fence_closed || too_deep) {
    wait(pair.start_waiter, pair.reads_ended);
    return false;
  }
  if (task.submission.posted > clock_) {
    wire_timers_.set(pair.start_timer, task.submission.posted);
    return false;
  }
  return true;
}

CompletionStatus Engine::check_local(const Pair& pair, const Task& task) const {
  const WorkRequest& request = task.request();
  if (task.total_bytes > message_max_bytes ||
      (task.is_atomic() && task.total_bytes != sizeof(std::uint64_t))) {
    return CompletionStatus::length_error;
  }
  if (request.inline_data) return CompletionStatus::success;
  const unsigned rights = task.is_read() ? access::local_write : 0;
  for (std::size_t i = 0; i < request.gather_count; ++i) {
    const Gather& part = request.gather[i];
    if (part.bytes == 0) continue;
    const auto address = reinterpret_cast<std::uintptr_t>(part.address);
    if (regions_.find(part.local_key, pair.client->id, address, part.bytes, rights) == nullptr)
      return CompletionStatus::protection_error;
  }
  return CompletionStatus::success;
}

void Engine::put_on_wire(Pair& pair, Lane& lane, std::uint64_t task, std::uint64_t bytes,
                         bool towards_peer) {
  Node& own = *pair.client->node;
  Node& other = *pair.peer->client->node;
  lane.flow.task = task;
  wire_.start(lane.flow, towards_peer ? own : other, towards_peer ? other : own, pair.wire, bytes,
              clock_);
}

void Engine::mark_reached(Pair& pair, Lane& lane) {
  Flow& flow = lane.flow;
  Time at = clock_ + pair.wire.latency_ns + (&lane == &pair.out ? pair.delay_ns : 0);
  if (!lane.arrivals.empty())
    at = std::max(at, lane.arrivals.back().at);  // a delay that was taken back does not reorder
  lane.arrivals.push_back({at, flow.task, flow.mark_bytes()});
  schedule_arrival(lane);
  if (flow.mark_bytes() < flow.total_bytes()) {
    wire_.next_mark(flow, clock_);
    return;
  }
  wire_.stop(flow, clock_);
  if (&lane == &pair.out) {
    begin(pair);
  } else {
    next_response(pair);
  }
}

void Engine::next_response(Pair& pair) {
  if (pair.back.flow.active() || pair.responses.empty()) return;
  const std::uint64_t number = pair.responses.front();
  pair.responses.pop_front();
  put_on_wire(pair, pair.back, number, pair.task(number).total_bytes, false);
}

void Engine::schedule_arrival(Lane& lane) {
  if (lane.arrivals.empty() || lane.timer.armed()) return;
  Pair& pair = *lane.timer.owner;
  const Arrival& first = lane.arrivals.front();
  // A read request shows nothing when it arrives; its response does, one latency later.
  const bool silent = &lane == &pair.out && pair.task(first.task).request().opcode == Opcode::read;
  (silent ? wire_timers_ : visible_timers_).set(lane.timer, first.at);
}

}  // namespace overlap::fabric::soft
