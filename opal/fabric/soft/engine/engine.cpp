// Objects of the engine, its clock, and its waiting.
#include "engine.hpp"

#include <algorithm>

namespace overlap::fabric::soft {

bool Task::is_atomic() const noexcept {
  return request().opcode == Opcode::fetch_add || request().opcode == Opcode::compare_swap;
}

bool Task::is_read() const noexcept { return request().opcode == Opcode::read || is_atomic(); }

bool Task::takes_receive() const noexcept {
  const Opcode opcode = request().opcode;
  return opcode == Opcode::send || opcode == Opcode::send_with_immediate ||
         opcode == Opcode::write_with_immediate;
}

// --- Objects -----------------------------------------------------------------------------------------------------------------

Client& Engine::add_client(std::uint32_t node, const WireSettings& settings, void* host) {
  auto client = std::make_unique<Client>();
  client->id = next_client_++;
  client->node_number = node;
  client->node = &wire_.node(node);
  client->wire = settings;
  client->host = host;
  Client& added = *client;
  clients_.emplace(added.id, std::move(client));
  fit_node(*added.node);
  return added;
}

void Engine::remove_client(Client& client, Time now) {
  catch_up(now);
  std::vector<Pair*> own;
  for (auto& [number, pair] : pairs_) {
    if (pair->client == &client) own.push_back(pair.get());
  }
  for (Pair* pair : own) remove_pair(*pair, "the peer process ended", now);
  for (auto request = requests_.begin(); request != requests_.end();) {
    if (request->second.asked != &client) {
      ++request;
      continue;
    }
    Pair& asker = *request->second.asker;
    request = requests_.erase(request);
    asker.state = PairState::failed;
    tell(asker, Event::Kind::unreachable, "the peer process ended before it answered");
  }
  for (const std::uint32_t key : regions_.keys(client.id)) regions_.remove(key);
  std::erase_if(completions_, [&](const auto& entry) { return entry.second->client == &client; });
  std::erase_if(receives_, [&](const auto& entry) { return entry.second->client == &client; });
  Node& node = *client.node;
  clients_.erase(client.id);
  fit_node(node);
}

Completions& Engine::add_completions(Client& client, void* host) {
  auto made = std::make_unique<Completions>();
  made->client = &client;
  made->host = host;
  Completions& completions = *made;
  completions_.emplace(&completions, std::move(made));
  return completions;
}

void Engine::remove_completions(Completions& completions) { completions_.erase(&completions); }

Receives& Engine::add_receives(Client& client, void* host) {
  auto made = std::make_unique<Receives>();
  made->client = &client;
  made->host = host;
  Receives& receives = *made;
  receives_.emplace(&receives, std::move(made));
  return receives;
}

void Engine::remove_receives(Receives& receives) { receives_.erase(&receives); }

Pair& Engine::add_pair(Client& client, Completions& completions, Receives* receives, void* host) {
  auto made = std::make_unique<Pair>(next_pair_++);
  made->client = &client;
  made->completions = &completions;
  made->receives = receives;
  made->host = host;
  Pair& pair = *made;
  pairs_.emplace(pair.number, std::move(made));
  return pair;
}

Pair* Engine::find_pair(std::uint32_t number) noexcept {
  const auto found = pairs_.find(number);
  return found == pairs_.end() ? nullptr : found->second.get();
}

Client* Engine::find_client(std::uint32_t id) noexcept {
  const auto found = clients_.find(id);
  return found == clients_.end() ? nullptr : found->second.get();
}

// --- Time --------------------------------------------------------------------------------------------------------------------

void Engine::catch_up(Time now) {
  advance(now);
  clock_ = std::max(clock_, now);
}

void Engine::advance(Time now) {
  for (;;) {
    Timer* visible = visible_timers_.first();
    Timer* wire = wire_timers_.first();
    // At equal times the wire comes first: what it does is the cause.
    Timer* next =
        wire != nullptr && (visible == nullptr || wire->at <= visible->at) ? wire : visible;
    if (next == nullptr || next->at > now) return;
    clock_ = std::max(clock_, next->at);
    TimerHeap::clear(*next);
    dispatch(*next);
  }
}

void Engine::dispatch(Timer& timer) {
  Pair& pair = *timer.owner;
  switch (timer.alarm) {
    case Alarm::start: begin(pair); return;
    case Alarm::request: mark_reached(pair, pair.out); return;
    case Alarm::response: mark_reached(pair, pair.back); return;
    case Alarm::arrive: arrive(pair); return;
    case Alarm::come_back: come_back(pair); return;
    case Alarm::retire: retire(pair); return;
  }
}

Time Engine::next_wake() const noexcept {
  if (has_backlog()) return clock_;
  const Timer* visible = visible_timers_.first();
  const Timer* wire = wire_timers_.first();
  const Time seen = visible == nullptr ? never : visible->at;
  return wire == nullptr ? seen : std::min(seen, wire->at + latency_min_ns_);
}

// --- Waiting -----------------------------------------------------------------------------------------------------------------

void Engine::wait(Waiter& waiter, Condition& condition) {
  leave(waiter);
  waiter.on = &condition;
  condition.waiters.push_back(&waiter);
}

void Engine::leave(Waiter& waiter) noexcept {
  if (waiter.on == nullptr) return;
  std::erase(waiter.on->waiters, &waiter);
  waiter.on = nullptr;
}

void Engine::raise(Condition& condition) {
  if (condition.waiters.empty()) return;
  std::vector<Waiter*> waiters;
  waiters.swap(condition.waiters);
  for (Waiter* waiter : waiters) waiter->on = nullptr;
  for (Waiter* waiter : waiters) {
    switch (waiter->stage) {
      case Stage::start: begin(*waiter->pair); break;
      case Stage::arrive:
        arrive(*waiter->pair);
        come_back(*waiter->pair);
        break;
    }
  }
}

// --- What clients and testers do ---------------------------------------------------------------------------------------------

void Engine::ring(Pair& pair, Time now) {
  if (pair.state == PairState::failed) {
    flush(pair);
    return;
  }
  if (pair.state != PairState::established) return;
  Submission submission;
  while (host_.fetch(pair, submission)) {
    Task& task = pair.tasks.emplace_back();
    task.submission = submission;
    // A request that was posted while the device slept starts when it was posted, but never before what has happened already.
    task.submission.posted = std::clamp(submission.posted, std::min(clock_, now), now);
    if (submission.request.inline_data) {
      task.total_bytes = submission.inline_bytes;
    } else {
      for (std::size_t i = 0; i < submission.request.gather_count; ++i)
        task.total_bytes += submission.request.gather[i].bytes;
    }
  }
  begin(pair);
}

void Engine::receives_posted(Receives& receives, Time now) {
  catch_up(now);
  raise(receives.posted);
}

void Engine::stall(Pair& pair, bool stalled, Time now) {
  catch_up(now);
  pair.stalled = stalled;
  if (!stalled) raise(pair.resumed);
}

void Engine::set_link(std::uint32_t node, bool down, Time now) {
  catch_up(now);
  wire_.set_down(wire_.node(node), down, clock_);
}

}  // namespace overlap::fabric::soft
