// Connections: made when something is to be sent, one at a time for each purpose although both
// sides may want it (P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring.hpp"

namespace overlap::ring {
namespace {

using Clock = std::chrono::steady_clock;

bool mine_is_smaller(const Endpoint& endpoint) noexcept {
  return opal_compare_proc(OPAL_PROC_MY_NAME, endpoint.proc.proc_name) < 0;
}

/// Does something wait for it? A connection that was asked for ahead of its use may fail: the peer
/// may be about to end.
bool needed(const Connection& connection) noexcept {
  return connection.purpose == Purpose::bulk ? !connection.endpoint.bulk_waiting.empty()
                                             : !connection.endpoint.waiting.empty();
}

opal_process_name_t name_from(std::uint64_t number) noexcept {
  opal_process_name_t name{};
  name.jobid = static_cast<opal_jobid_t>(number >> 32U);
  name.vpid = static_cast<opal_vpid_t>(number);
  return name;
}

}  // namespace

void Transport::want(Connection& connection) {
  const bool can_step =
      connection.state == ConnectState::idle || connection.state == ConnectState::failed;
  if (can_step && !finalizing_)
    connection_step(connection, ConnectEvent::want, 0, "it could not be made");
}

void Transport::connection_step(Connection& connection, ConnectEvent event, std::uint64_t request,
                                const std::string& why) {
  const ConnectStep step = overlap::ring::step(
      connection.state, event,
      {.mine_is_smaller = mine_is_smaller(connection.endpoint), .needed = needed(connection)});
  if (!step.legal) return;
  if (connection.under_way()) --connecting_;
  if (connection.established() && step.next != ConnectState::established) receives_.disconnected();
  connection.state = step.next;
  if (connection.under_way()) ++connecting_;
  if (step.next == ConnectState::idle) connection.trouble = {};
  act(connection, step.action, request, why);
}

void Transport::act(Connection& connection, ConnectAction action, std::uint64_t request,
                    const std::string& why) {
  Endpoint& endpoint = connection.endpoint;
  switch (action) {
    case ConnectAction::none: return;
    case ConnectAction::connect: ask_for(connection); return;
    case ConnectAction::drop_and_accept: drop_queue_pairs(connection); [[fallthrough]];
    case ConnectAction::accept:
      if (!try_open_queue_pair(connection, request)) return;
      if (device_->accept(request, *connection.queue_pair) != fabric::Status::done)
        connection_step(connection, ConnectEvent::lost, 0, "the peer has given its request up");
      return;
    case ConnectAction::reject: device_->reject(request); return;
    case ConnectAction::drop: drop_queue_pairs(connection); return;
    case ConnectAction::drop_and_wait:
      drop_queue_pairs(connection);
      set_clock(connection, why);
      return;
    case ConnectAction::flush_queue: made(connection); return;
    case ConnectAction::report_lost: report_lost(endpoint, why); return;
  }
}

void Transport::ask_for(Connection& connection) {
  if (!try_open_queue_pair(connection, 0)) return;
  const Endpoint& endpoint = connection.endpoint;
  const IntroductionBytes bytes = encode({.name = name_of(*opal_proc_local_get()),
                                          .attempt = ++connection.attempt,
                                          .purpose = connection.purpose},
                                         endpoint.where.secret);
  fabric::PrivateData data;
  std::copy(bytes.begin(), bytes.end(), data.bytes.begin());
  data.size_bytes = bytes.size();
  if (device_->connect(*connection.queue_pair, endpoint.where.address, data) !=
      fabric::Status::done)
    connection_step(connection, ConnectEvent::device_failed, 0, "the device cannot connect");
}

/// After a failed attempt: when the next one comes.
void Transport::set_clock(Connection& connection, const std::string& why) {
  ConnectTrouble& trouble = connection.trouble;
  const Clock::time_point now = Clock::now();
  if (trouble.failures++ == 0) trouble.since = trouble.told = now;
  if (now - trouble.told >= std::chrono::minutes(1)) {
    trouble.told = now;
    tell_connecting(connection.endpoint, why,
                    std::chrono::duration_cast<std::chrono::seconds>(now - trouble.since).count());
  }
  trouble.due =
      now + std::chrono::milliseconds(back_off_ms(trouble.failures, OPAL_PROC_MY_NAME.vpid));
  backing_off_.push_back(&connection);
}

/// Attempts whose time has come; connections that were made otherwise leave the list.
void Transport::retry_due(Clock::time_point now) {
  const auto waits = [now](const Connection* connection) {
    return connection->state == ConnectState::backing_off && connection->trouble.due > now;
  };
  const auto rest = std::partition(backing_off_.begin(), backing_off_.end(), waits);
  const std::vector<Connection*> due(rest, backing_off_.end());
  backing_off_.erase(rest, backing_off_.end());
  for (Connection* connection : due) {
    if (connection->state == ConnectState::backing_off)
      connection_step(*connection, ConnectEvent::due, 0, {});
  }
}

QueuePairPointer Transport::make_queue_pair(Connection& connection) {
  receives_.grow();
  // Rings are written to; what is read or counted in belongs to large transfers.
  QueuePairPointer made = completions_.make_queue_pair(
      receives_.queue(),
      connection.purpose == Purpose::messages ? fabric::access::remote_write : fabric::access::any);
  by_queue_pair_[made->number()] = &connection;
  return made;
}

/// Adapters run out of queue pairs and have some again: a refusal is a failed attempt like others,
/// for a while. Nobody waits for one that was made ahead of its use.
/// @param request  of the peer, which is rejected; 0 for none
/// @returns  false: the connection has taken its step
bool Transport::try_open_queue_pair(Connection& connection, std::uint64_t request) {
  connection.account.reset();
  try {
    connection.queue_pair = make_queue_pair(connection);
    connection.refusals = 0;
    return true;
  } catch (const fabric::Error& error) {
    if (request != 0) device_->reject(request);
    // Messages always need theirs, here or at the peer that asks.
    const bool counts = needed(connection) || connection.purpose == Purpose::messages;
    if (counts || connection.refusals == 0) ++connection.refusals;
    const bool for_good = error.kind == fabric::Error::Kind::bad_option ||
                          (counts && connection.refusals >= refusals_max);
    connection_step(connection, for_good ? ConnectEvent::device_failed : ConnectEvent::lost, 0,
                    error.what());
    return false;
  }
}

/// End an attempt: neither its events nor its completions come here any more.
void Transport::drop_queue_pairs(Connection& connection) noexcept {
  for (auto* queue_pair : {&connection.queue_pair, &connection.mirror}) {
    if (*queue_pair != nullptr) by_queue_pair_.erase((*queue_pair)->number());
    queue_pair->reset();
  }
}

/// The request that we have sent to ourselves.
void Transport::accept_own(Connection& connection, std::uint64_t request) {
  try {
    connection.mirror = make_queue_pair(connection);
  } catch (const fabric::Error&) {
    device_->reject(request);  // which comes back as the failure of our own attempt
    return;
  }
  if (device_->accept(request, *connection.mirror) != fabric::Status::done) {
    connection_step(connection, ConnectEvent::lost, 0, "the device cannot accept a connection");
  }
}

void Transport::made(Connection& connection) {
  ++counters().connections;
  receives_.connected();
  receives_.grow();
  connection.trouble = {};
  if (tunables.verbose >= 1) {
    opal_output(0, "btl/ring: connected to %s for %s",
                OPAL_NAME_PRINT(connection.endpoint.proc.proc_name),
                connection.purpose == Purpose::messages ? "messages" : "large transfers");
  }
  mark_busy(connection.endpoint);
  flush_waiting(connection.endpoint);
  flush_bulk(connection.endpoint);
}

Connection* Transport::connection_of(const fabric::QueuePair* queue_pair) noexcept {
  const auto found = by_queue_pair_.find(queue_pair->number());
  return found == by_queue_pair_.end() || found->second->queue_pair.get() != queue_pair
             ? nullptr
             : found->second;
}

void Transport::on_request(const fabric::Event& event) {
  const auto introduction = decode_introduction(
      std::span(event.data.bytes)
          .first(std::min<std::size_t>(event.data.size_bytes, event.data.bytes.size())),
      secret_);
  Endpoint* const peer =
      introduction && !finalizing_ ? endpoint_of(name_from(introduction->name)) : nullptr;
  if (peer == nullptr) {
    device_->reject(event.request);
    return;
  }
  Connection& connection = introduction->purpose == Purpose::bulk ? peer->bulk : peer->messages;
  if (&peer->proc == opal_proc_local_get()) {
    accept_own(connection, event.request);
    return;
  }
  const bool stale = introduction->attempt < connection.newest_seen;
  connection.newest_seen = std::max(connection.newest_seen, introduction->attempt);
  connection_step(connection, stale ? ConnectEvent::stale_request : ConnectEvent::request,
                  event.request, {});
}

/// The endpoint of a process that asks for a connection. @returns nullptr: not with that one
Endpoint* Transport::endpoint_of(const opal_process_name_t& name) {
  opal_proc_t* proc = opal_proc_for_name(name);
  Handle* peer = proc != nullptr && !departed_.contains(name_of(*proc)) ? handle(*proc) : nullptr;
  return peer != nullptr ? &endpoint(*peer) : nullptr;
}

/// What a peer has sent before its connection ended, its goodbye perhaps among it.
void Transport::take_last_messages(Endpoint& endpoint) {
  // Bounded, for others go on sending: a queue's worth of completions, as often as the ring had
  // some.
  do {
    for (std::uint32_t left = receives_.max(); left > 0 && poll_completions() > 0; --left) {}
  } while (take_from_ring(endpoint) > 0);
}

int Transport::poll_events() {
  int count = 0;
  fabric::Event event;
  while (device_->poll_event(event)) {
    ++count;
    if (event.kind == fabric::Event::Kind::connect_request) {
      on_request(event);
      continue;
    }
    Connection* connection = connection_of(event.queue_pair);
    if (connection == nullptr)
      continue;  // one that lost a crossing, or our own other end; they go with the endpoint
    switch (event.kind) {
      case fabric::Event::Kind::connect_request: break;
      case fabric::Event::Kind::established:
        connection_step(*connection,
                        connection->state == ConnectState::accepting
                            ? ConnectEvent::their_established
                            : ConnectEvent::our_established,
                        0, {});
        break;
      case fabric::Event::Kind::rejected:
      case fabric::Event::Kind::unreachable:
        connection_step(*connection, ConnectEvent::lost, 0, event.why);
        break;
      case fabric::Event::Kind::peer_lost:
        take_last_messages(connection->endpoint);
        connection_step(*connection, ConnectEvent::lost, 0, event.why);
        break;
    }
  }
  return count;
}

/// The end of a connection that nobody has announced. @param why  one clause in words
void Transport::report_lost(Endpoint& endpoint, const std::string& why) noexcept {
  if (endpoint.reported) return;
  endpoint.lost = true;
  endpoint.reported = true;
  if (finalizing_ || endpoint.parting || endpoint.said_goodbye) return;
  tell_lost(endpoint, why);
  if (error_callback_ != nullptr) {
    error_callback_(&ring_module.base, MCA_BTL_ERROR_FLAGS_FATAL, &endpoint.proc,
                    const_cast<char*>(why.c_str()));
  }
}

/// Tell peers that the end of their connections is meant, and wait until all that was posted to
/// them has arrived.
///
/// Bounded in time: a peer that is gone already does not answer.
void Transport::part(std::span<Endpoint* const> peers) noexcept {
  constexpr auto longest = std::chrono::milliseconds(200);
  const auto reachable = [](const Endpoint& endpoint) {
    return !endpoint.lost && !endpoint.said_goodbye &&
           (endpoint.messages.established() || endpoint.bulk.established());
  };
  for (Endpoint* endpoint : peers) {
    endpoint->parting = true;
    if (!reachable(*endpoint)) continue;
    guarded([&]() -> int {
      const ControlBody goodbye{.kind = control_kind::goodbye};
      if (try_send_control(*endpoint, goodbye) || !endpoint->bulk.established())
        return OPAL_SUCCESS;
      return send_behind(*endpoint, 0, std::as_bytes(std::span(&goodbye, 1)), Behind::puts);
    });
  }
  const auto under_way = [&](Endpoint* endpoint) {
    return reachable(*endpoint) &&
           (endpoint->messages.account.used() != 0 || endpoint->bulk.account.used() != 0);
  };
  const auto began = std::chrono::steady_clock::now();
  while (std::any_of(peers.begin(), peers.end(), under_way) &&
         std::chrono::steady_clock::now() - began < longest) {
    guarded([this]() -> int { return poll_completions() + poll_events(); });
  }
}

}  // namespace overlap::ring
