// Time, alarms, and what goes through several parts.
// SPDX-License-Identifier: BSD-3-Clause
#include "engine.hpp"

#include <algorithm>
#include <vector>

namespace overlap::fabric::soft {

Engine::Engine(Host& host)
    : host_(host),
      wire_(schedule_.hidden()),
      directory_(wire_),
      connections_(host, schedule_, directory_),
      access_(regions_),
      mover_(host, access_),
      queues_(host, *this),
      lanes_(schedule_, wire_),
      retirement_(schedule_, queues_),
      failures_(host, schedule_, lanes_, queues_, retirement_),
      admission_(host, schedule_, access_, mover_, failures_),
      delivery_(schedule_, queues_, retirement_, *this),
      arrivals_(schedule_, lanes_, mover_, admission_, delivery_, failures_),
      requester_(host, schedule_, access_, lanes_, failures_, retirement_),
      management_(host, schedule_, directory_, queues_, failures_, requester_, *this) {}

void Engine::remove_client(Client& client, Time now) {
  catch_up(now);
  for (Manager* manager : directory_.managers_of(client)) remove_manager(*manager, now);
  for (Pair* pair : directory_.pairs_of(client)) remove_pair(*pair, "the peer process ended", now);
  connections_.forget_asked(client);
  for (const std::uint32_t key : regions_.keys(client.id)) regions_.remove(key);
  directory_.remove_client(client);
}

void Engine::remove_pair(Pair& pair, const std::string& why, Time now) {
  catch_up(now);
  connections_.forget_asker(pair);
  failures_.break_pair(pair, why);
  directory_.remove_pair(pair);
}

void Engine::remove_manager(Manager& manager, Time now) {
  catch_up(now);
  management_.stop(manager);
  directory_.remove_manager(manager);
}

void Engine::remove_completions(Completions& completions, Time now) {
  catch_up(now);
  queues_.break_counting(completions, CompletionStatus::flushed);
  directory_.remove_completions(completions);
}

bool Engine::connect(Pair& pair, std::uint32_t client, const PrivateData& data, Time now) {
  catch_up(now);
  return connections_.connect(pair, client, data);
}

bool Engine::accept(std::uint64_t request, Pair& pair) {
  return connections_.accept(request, pair);
}

void Engine::reject(std::uint64_t request, const Client& client) {
  connections_.reject(request, client);
}

// --- Time ------------------------------------------------------------------------------

void Engine::catch_up(Time now) {
  advance(now);
  schedule_.catch_up(now);
}

void Engine::advance(Time now) {
  connections_.deliver_late(now);
  for (;;) {
    if (queues_.take_overrun()) break_overrun();
    const Timer* due = schedule_.take_due(now);
    if (due == nullptr) return;
    dispatch(*due);
  }
}

void Engine::dispatch(const Timer& timer) {
  if (timer.alarm == Alarm::manage) return management_.execute(*timer.manager);
  Pair& pair = *timer.owner;
  switch (timer.alarm) {
    case Alarm::start: requester_.begin(pair); return;
    case Alarm::request:
      if (lanes_.mark_reached(pair, pair.out)) requester_.begin(pair);
      return;
    case Alarm::response:
      if (lanes_.mark_reached(pair, pair.back)) lanes_.send_response(pair);
      return;
    case Alarm::arrive: arrivals_.arrive(pair); return;
    case Alarm::come_back: arrivals_.come_back(pair); return;
    case Alarm::retire:
      if (const CompletionStatus fault = retirement_.retire(pair);
          fault != CompletionStatus::success) {
        failures_.break_pair(pair, std::string("the peer's queue pair failed: ") + text(fault));
        // Nobody polls its completions.
        if (pair.completions->counting) tell(host_, pair, Event::Kind::peer_lost, text(fault));
      }
      return;
    case Alarm::try_again:
      leave(pair.arrive_waiter);
      arrivals_.arrive(pair);
      return;
    case Alarm::give_up: failures_.give_up(pair); return;
    case Alarm::manage: return;
  }
}

void Engine::go_on(Pair& pair, Stage stage) {
  switch (stage) {
    case Stage::start: requester_.begin(pair); return;
    case Stage::arrive:
      admission_.try_again_later(pair);
      arrivals_.arrive(pair);
      arrivals_.come_back(pair);
      return;
  }
}

void Engine::go_on(Manager& manager) { management_.look(manager); }

Time Engine::next_wake() const noexcept {
  if (lanes_.has_backlog() || queues_.has_overrun()) return schedule_.now();
  return std::min(connections_.next_late(), schedule_.next_visible(directory_.latency_min_ns()));
}

// --- What clients and testers do -------------------------------------------------------

void Engine::ring(Pair& pair, Time now) {
  if (pair.state == PairState::failed) {
    failures_.flush(pair);
  } else if (pair.state == PairState::established) {
    requester_.fetch(pair, now);
    requester_.begin(pair);
  }
}

void Engine::ring(Manager& manager, Time now) { management_.ring(manager, now); }

void Engine::receives_posted(Receives& receives, Time now) {
  catch_up(now);
  raise(receives.posted, *this);
}

void Engine::stall(Pair& pair, bool stalled, Time now) {
  catch_up(now);
  pair.faults.stalled = stalled;
  if (!stalled) raise(pair.resumed, *this);
}

void Engine::set_link(std::uint32_t node, bool down, Time now) {
  catch_up(now);
  wire_.set_down(wire_.node(node), down, schedule_.now());
  directory_.each_pair([this](Pair& pair) { lanes_.watch_link(pair); });
}

/// A completion queue has lost an entry: all that report through it fail, as they do on an adapter.
void Engine::break_overrun() {
  std::vector<Pair*> failed;
  directory_.each_pair([&](Pair& pair) {
    const bool overrun = pair.completions->overrun || pair.receive_completions->overrun;
    if (overrun && pair.state == PairState::established) failed.push_back(&pair);
  });
  for (Pair* pair : failed) {
    if (pair->state != PairState::established) continue;  // the peer of an earlier one
    failures_.break_pair(*pair, "the peer's completion queue overflowed");
    tell(host_, *pair, Event::Kind::peer_lost,
         "the completion queue overflowed: more was posted than it has entries for");
  }
}

}  // namespace overlap::fabric::soft
