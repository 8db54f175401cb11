// Connections: asking, answering, and the end of either side.
#include <algorithm>

#include "engine.hpp"

namespace overlap::fabric::soft {

void Engine::fit_node(Node& node) {
  latency_min_ns_ = never;
  node.bytes_per_ns = 0;
  for (auto& [id, client] : clients_) {
    latency_min_ns_ = std::min(latency_min_ns_, client->wire.latency_ns);
    if (client->node == &node)
      node.bytes_per_ns = std::max(node.bytes_per_ns, client->wire.bytes_per_ns);
  }
}

void Engine::tell(Pair& pair, Event::Kind kind, const std::string& why) {
  Event event;
  event.kind = kind;
  event.why = why;
  host_.event(*pair.client, &pair, event);
}

bool Engine::connect(Pair& pair, std::uint32_t client, const PrivateData& data) {
  if (pair.state != PairState::fresh) return false;
  pair.state = PairState::asking;
  Client* asked = find_client(client);
  if (asked == nullptr) {
    pair.state = PairState::failed;
    tell(pair, Event::Kind::unreachable, "the process of this address has ended");
    return true;
  }
  const std::uint64_t number = next_request_++;
  requests_.emplace(number, Request{&pair, asked});
  Event event;
  event.kind = Event::Kind::connect_request;
  event.request = number;
  event.data = data;
  host_.event(*asked, nullptr, event);
  return true;
}

bool Engine::accept(std::uint64_t request, Pair& pair) {
  if (pair.state != PairState::fresh) return false;
  const auto found = requests_.find(request);
  if (found == requests_.end()) {
    // It was there when it was reported: the asker has gone since.
    if (request == 0 || request >= next_request_) return false;
    pair.state = PairState::failed;
    tell(pair, Event::Kind::unreachable, "the process that asked for the connection has ended");
    return true;
  }
  if (found->second.asked != pair.client) return false;
  Pair& asker = *found->second.asker;
  requests_.erase(found);
  asker.peer = &pair;
  pair.peer = &asker;
  asker.wire = pair.wire = slower(asker.client->wire, pair.client->wire);
  asker.state = pair.state = PairState::established;
  tell(asker, Event::Kind::established, {});
  tell(pair, Event::Kind::established, {});
  return true;
}

void Engine::reject(std::uint64_t request, const Client& client) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.asked != &client) return;
  Pair& asker = *found->second.asker;
  requests_.erase(found);
  asker.state = PairState::failed;
  tell(asker, Event::Kind::rejected, "the peer refused the connection");
}

void Engine::forget_requests_of(const Pair& pair) {
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.asker == &pair; });
}

void Engine::lose(Pair& pair, const std::string& why) {
  if (pair.state != PairState::established) return;
  flush(pair);
  tell(pair, Event::Kind::peer_lost, why);
}

void Engine::remove_pair(Pair& pair, const std::string& why, Time now) {
  catch_up(now);
  forget_requests_of(pair);
  halt(pair.out);
  halt(pair.back);
  leave(pair.start_waiter);
  leave(pair.arrive_waiter);
  TimerHeap::clear(pair.start_timer);
  TimerHeap::clear(pair.retire_timer);
  if (Pair* peer = pair.peer; peer != nullptr) {
    peer->peer = nullptr;
    lose(*peer, why);
  }
  pairs_.erase(pair.number);
}

}  // namespace overlap::fabric::soft
