// Asking and answering.
// SPDX-License-Identifier: BSD-3-Clause
#include "connections.hpp"

#include <algorithm>

namespace overlap::fabric::soft {

bool Connections::connect(Pair& pair, std::uint32_t client, const PrivateData& data) {
  if (pair.state != PairState::fresh) return false;
  pair.state = PairState::asking;
  Client* asked = directory_.find_client(client);
  if (asked == nullptr) {
    pair.state = PairState::failed;
    tell(host_, pair, Event::Kind::unreachable, "the process of this address has ended");
    return true;
  }
  const std::uint64_t number = next_request_++;
  requests_.emplace(number, Request{&pair, asked});
  const bool lost = asked->lose_requests > 0;
  if (lost) --asked->lose_requests;
  const Late request{schedule_.now() + asked->request_delay_ns, number, asked->id, lost, data};
  if (lost || asked->request_delay_ns > 0) {
    late_.push_back(request);
  } else {
    deliver(request);
  }
  return true;
}

void Connections::deliver_late(Time now) {
  std::vector<Late> due;
  for (const Late& late : late_) {
    if (late.at <= now) due.push_back(late);
  }
  std::erase_if(late_, [&](const Late& late) { return late.at <= now; });
  for (const Late& late : due) deliver(late);
}

Time Connections::next_late() const noexcept {
  Time next = never;
  for (const Late& late : late_) next = std::min(next, late.at);
  return next;
}

/// A late one arrives although its asker may have given up: the asked learns that when it accepts.
void Connections::deliver(const Late& late) {
  if (late.lost) {
    if (const auto found = requests_.find(late.request); found != requests_.end())
      fail(found, Event::Kind::unreachable, "the peer does not answer");
    return;
  }
  Client* asked = directory_.find_client(late.asked);
  if (asked == nullptr) return;
  Event event;
  event.kind = Event::Kind::connect_request;
  event.request = late.request;
  event.data = late.data;
  host_.event(*asked, nullptr, event);
}

bool Connections::accept(std::uint64_t request, Pair& pair) {
  if (pair.state != PairState::fresh) return false;
  const auto found = requests_.find(request);
  if (found == requests_.end()) {
    // It was there when it was reported: the asker has gone since.
    if (request == 0 || request >= next_request_) return false;
    pair.state = PairState::failed;
    tell(host_, pair, Event::Kind::unreachable,
         "the process that asked for the connection has ended");
    return true;
  }
  if (found->second.asked != pair.client) return false;
  Pair& asker = *found->second.asker;
  requests_.erase(found);
  asker.peer = &pair;
  pair.peer = &asker;
  asker.wire = pair.wire = slower(asker.client->wire, pair.client->wire);
  asker.state = pair.state = PairState::established;
  tell(host_, asker, Event::Kind::established, {});
  tell(host_, pair, Event::Kind::established, {});
  return true;
}

void Connections::reject(std::uint64_t request, const Client& client) {
  const auto found = requests_.find(request);
  if (found == requests_.end() || found->second.asked != &client) return;
  fail(found, Event::Kind::rejected, "the peer refused the connection");
}

void Connections::forget_asker(const Pair& pair) {
  std::erase_if(requests_, [&](const auto& entry) { return entry.second.asker == &pair; });
}

void Connections::forget_asked(const Client& client) {
  for (auto request = requests_.begin(); request != requests_.end();) {
    request = request->second.asked != &client ? std::next(request)
                                               : fail(request, Event::Kind::unreachable,
                                                      "the peer process ended before it answered");
  }
}

Connections::Requests::iterator Connections::fail(Requests::iterator request, Event::Kind kind,
                                                  const std::string& why) {
  Pair& asker = *request->second.asker;
  const auto next = requests_.erase(request);
  asker.state = PairState::failed;
  tell(host_, asker, kind, why);
  return next;
}

}  // namespace overlap::fabric::soft
