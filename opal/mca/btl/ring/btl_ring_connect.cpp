// Connections: made when something is to be sent, one at a time for each purpose although both
// sides may want it (P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_connect.hpp"

#include <algorithm>
#include <utility>

#include "btl_ring_fault.hpp"
#include "btl_ring_tunables.hpp"

namespace overlap::ring {
namespace {

// Even with nothing else to do.
constexpr auto time_between_polls = std::chrono::microseconds(500);

bool mine_is_smaller(const Endpoint& endpoint) noexcept {
  return opal_compare_proc(OPAL_PROC_MY_NAME, endpoint.proc.proc_name) < 0;
}

/// Does something wait for it? A connection that was asked for ahead of its use may fail: the peer
/// may be about to end.
bool needed(const Connection& connection) noexcept {
  return connection.purpose == Purpose::bulk ? !connection.endpoint.bulk_waiting.empty()
                                             : !connection.endpoint.waiting.empty();
}

}  // namespace

void Connector::want(Connection& connection) {
  const bool can_step =
      connection.state == ConnectState::idle || connection.state == ConnectState::failed;
  if (can_step && !upper_.closed()) step(connection, ConnectEvent::want, 0, "it could not be made");
}

void Connector::step(Connection& connection, ConnectEvent event, std::uint64_t request,
                     const std::string& why) {
  const ConnectStep taken = ring::step(
      connection.state, event,
      {.mine_is_smaller = mine_is_smaller(connection.endpoint), .needed = needed(connection)});
  if (!taken.legal) return;
  if (connection.under_way()) --connecting_;
  if (connection.established() && taken.next != ConnectState::established)
    queue_pairs_.disconnected();
  connection.state = taken.next;
  if (connection.under_way()) ++connecting_;
  if (taken.next == ConnectState::idle) connection.trouble = {};
  act(connection, taken.action, request, why);
}

void Connector::act(Connection& connection, ConnectAction action, std::uint64_t request,
                    const std::string& why) {
  switch (action) {
    case ConnectAction::none: return;
    case ConnectAction::connect: ask_for(connection); return;
    case ConnectAction::drop_and_accept: queue_pairs_.drop(connection); [[fallthrough]];
    case ConnectAction::accept:
      if (!try_open_queue_pair(connection, request)) return;
      if (device_.accept(request, *connection.queue_pair) != fabric::Status::done)
        step(connection, ConnectEvent::lost, 0, "the peer has given its request up");
      return;
    case ConnectAction::reject: device_.reject(request); return;
    case ConnectAction::drop: queue_pairs_.drop(connection); return;
    case ConnectAction::drop_and_wait:
      queue_pairs_.drop(connection);
      set_clock(connection, why);
      return;
    case ConnectAction::flush_queue: made(connection); return;
    case ConnectAction::report_lost: upper_.report_lost(connection.endpoint, why); return;
  }
}

void Connector::ask_for(Connection& connection) {
  if (!try_open_queue_pair(connection, 0)) return;
  const Endpoint& endpoint = connection.endpoint;
  const IntroductionBytes bytes = encode({.name = number_from(opal_proc_local_get()->proc_name),
                                          .attempt = ++connection.attempt,
                                          .purpose = connection.purpose},
                                         endpoint.where.secret);
  fabric::PrivateData data;
  std::copy(bytes.begin(), bytes.end(), data.bytes.begin());
  data.size_bytes = bytes.size();
  if (device_.connect(*connection.queue_pair, endpoint.where.address, data) != fabric::Status::done)
    step(connection, failure_for_good(), 0, "the device cannot connect");
}

/// What ends the connection for good ends the job: an MPI thread tries once more before that.
ConnectEvent Connector::failure_for_good() const noexcept {
  return in_thread_ ? ConnectEvent::lost : ConnectEvent::device_failed;
}

void Connector::abandon(Connection& connection) noexcept {
  queue_pairs_.drop(connection);
  std::erase(backing_off_, &connection);
  if (connection.under_way()) --connecting_;
  if (connection.established()) queue_pairs_.disconnected();
  connection.state = ConnectState::failed;
}

/// After a failed attempt: when the next one comes.
void Connector::set_clock(Connection& connection, const std::string& why) {
  ConnectTrouble& trouble = connection.trouble;
  const Clock::time_point now = Clock::now();
  if (trouble.failures++ == 0) trouble.since = trouble.told = now;
  if (!in_thread_ && now - trouble.told >= std::chrono::minutes(1)) {
    trouble.told = now;
    tell_connecting(connection.endpoint, why,
                    std::chrono::duration_cast<std::chrono::seconds>(now - trouble.since).count());
  }
  trouble.due =
      now + std::chrono::milliseconds(back_off_ms(trouble.failures, OPAL_PROC_MY_NAME.vpid));
  backing_off_.push_back(&connection);
}

/// Attempts whose time has come; connections that were made otherwise leave the list.
void Connector::retry_due(Clock::time_point now) {
  const auto waits = [now](const Connection* connection) {
    return connection->state == ConnectState::backing_off && connection->trouble.due > now;
  };
  const auto rest = std::partition(backing_off_.begin(), backing_off_.end(), waits);
  const std::vector<Connection*> due(rest, backing_off_.end());
  backing_off_.erase(rest, backing_off_.end());
  for (Connection* connection : due) {
    if (connection->state == ConnectState::backing_off) step(*connection, ConnectEvent::due, 0, {});
  }
}

/// Adapters run out of queue pairs and have some again: a refusal is a failed attempt like others,
/// for a while. Nobody waits for one that was made ahead of its use.
/// @param request  of the peer, which is rejected; 0 for none
/// @returns  false: the connection has taken its step
bool Connector::try_open_queue_pair(Connection& connection, std::uint64_t request) {
  connection.account.reset();
  try {
    connection.queue_pair = queue_pairs_.make(connection);
    connection.refusals = 0;
    return true;
  } catch (const fabric::Error& error) {
    if (request != 0) device_.reject(request);
    // Messages always need theirs, here or at the peer that asks.
    const bool counts = needed(connection) || connection.purpose == Purpose::messages;
    if (counts || connection.refusals == 0) ++connection.refusals;
    const bool for_good = error.kind == fabric::Error::Kind::bad_option ||
                          (counts && connection.refusals >= refusals_max);
    step(connection, for_good ? failure_for_good() : ConnectEvent::lost, 0, error.what());
    return false;
  }
}

/// The request that we have sent to ourselves.
void Connector::accept_own(Connection& connection, std::uint64_t request) {
  try {
    connection.mirror = queue_pairs_.make(connection);
  } catch (const fabric::Error&) {
    device_.reject(request);  // which comes back as the failure of our own attempt
    return;
  }
  if (device_.accept(request, *connection.mirror) != fabric::Status::done) {
    step(connection, ConnectEvent::lost, 0, "the device cannot accept a connection");
  }
}

void Connector::made(Connection& connection) {
  ++counters().connections;
  queue_pairs_.connected();
  connection.trouble = {};
  if (tunables.verbose >= 1) {
    opal_output(0, "btl/ring: connected to %s for %s",
                OPAL_NAME_PRINT(connection.endpoint.proc.proc_name),
                connection.purpose == Purpose::messages ? "messages" : "large transfers");
  }
  observer_.on_established(connection);
}

std::optional<Introduction> Connector::introduction_of(const fabric::Event& request) const {
  return decode_introduction(
      std::span(request.data.bytes)
          .first(std::min<std::size_t>(request.data.size_bytes, request.data.bytes.size())),
      peers_.secret());
}

void Connector::on_request(const fabric::Event& event) {
  const auto introduction = introduction_of(event);
  Endpoint* const peer = introduction && !upper_.closed()
                             ? peers_.endpoint_of(name_from(introduction->name))
                             : nullptr;
  if (peer == nullptr) {
    device_.reject(event.request);
    return;
  }
  on_request_of(*peer, event, *introduction);
}

void Connector::on_request_of(Endpoint& peer, const fabric::Event& event,
                              const Introduction& introduction) {
  Connection& connection = introduction.purpose == Purpose::bulk ? peer.bulk : peer.messages;
  if (&peer.proc == opal_proc_local_get()) {
    accept_own(connection, event.request);
    return;
  }
  const bool stale = introduction.attempt < connection.newest_seen;
  connection.newest_seen = std::max(connection.newest_seen, introduction.attempt);
  step(connection, stale ? ConnectEvent::stale_request : ConnectEvent::request, event.request, {});
}

/// An event stands for its queue pair by number: that may go before the event is handled.
bool Connector::try_next(Happened& next) {
  if (!device_.poll_event(next.event)) return false;
  next.queue_pair_number = next.event.queue_pair == nullptr ? 0 : next.event.queue_pair->number();
  return true;
}

void Connector::handle(const Happened& happened) {
  const fabric::Event& event = happened.event;
  if (event.kind == fabric::Event::Kind::connect_request) {
    on_request(event);
    return;
  }
  Connection* connection = queue_pairs_.user_of(happened.queue_pair_number);
  if (connection == nullptr) return;  // its queue pair goes with the endpoint
  switch (event.kind) {
    case fabric::Event::Kind::connect_request: break;
    case fabric::Event::Kind::established:
      step(*connection,
           connection->state == ConnectState::accepting ? ConnectEvent::their_established
                                                        : ConnectEvent::our_established,
           0, {});
      break;
    case fabric::Event::Kind::rejected:
    case fabric::Event::Kind::unreachable:
      step(*connection, ConnectEvent::lost, 0, event.why);
      break;
    case fabric::Event::Kind::peer_lost:
      observer_.take_last_messages(connection->endpoint);
      step(*connection, ConnectEvent::lost, 0, event.why);
      break;
  }
}

int Connector::poll_events() {
  if (in_thread_) return poll_events_in_thread();
  int count = 0;
  while (const auto happened = left_.take()) {
    handle(*happened);
    ++count;
  }
  Happened next;
  while (try_next(next)) {
    handle(next);
    ++count;
  }
  return count;
}

/// The name of the process that an event is about, as a number. @returns  nullopt: of a connection
/// that has gone, or a request that does not say
std::optional<std::uint64_t> Connector::process_of(const Happened& happened) const {
  if (happened.event.kind == fabric::Event::Kind::connect_request) {
    const auto introduction = introduction_of(happened.event);
    return introduction ? std::optional(introduction->name) : std::nullopt;
  }
  const Connection* const connection = queue_pairs_.user_of(happened.queue_pair_number);
  if (connection == nullptr) return std::nullopt;
  return number_from(connection->endpoint.proc.proc_name);
}

/// @returns  false: it is for an MPI thread, as it asks for a process or ends a connection that was
/// there, or comes behind one that is
bool Connector::try_handle_in_thread(const Happened& happened) {
  using enum fabric::Event::Kind;
  const fabric::Event& event = happened.event;
  if (left_.holds_up(process_of(happened))) return false;
  if (event.kind == rejected || event.kind == unreachable) {
    const Connection* const connection = queue_pairs_.user_of(happened.queue_pair_number);
    if (connection != nullptr && !connection->under_way()) return false;
  }
  if (event.kind == established || event.kind == rejected || event.kind == unreachable) {
    handle(happened);
    return true;
  }
  if (event.kind != connect_request || upper_.closed()) return false;
  const auto introduction = introduction_of(event);
  if (!introduction) {  // of no process of this job's: there is nothing to ask Open MPI for
    device_.reject(event.request);
    return true;
  }
  Endpoint* const peer = peers_.find_known(name_from(introduction->name));
  if (peer == nullptr) return false;
  on_request_of(*peer, event, *introduction);
  return true;
}

int Connector::poll_events_in_thread() {
  // MPI threads wait for the lock, and a queue pair takes time: who sees a count comes again.
  constexpr int events_max = 4;
  int count = 0;
  int events = 0;
  Happened next;
  while (events < events_max && try_next(next)) {
    ++events;
    if (try_handle_in_thread(next)) {
      ++count;
    } else {
      const auto process = process_of(next);
      left_.leave(std::exchange(next, {}), process);
    }
  }
  if (!backing_off_.empty()) retry_due(Clock::now());
  return events == events_max ? std::max(count, 1) : count;
}

bool Connector::awaits_retry() const noexcept {
  return std::ranges::any_of(backing_off_, [](const Connection* connection) {
    return connection->state == ConnectState::backing_off && needed(*connection);
  });
}

int Connector::poll_events_timed() {
  calls_ = 0;
  const auto now = Clock::now();
  if (connecting_ == 0 && now - polled_ < time_between_polls) return 0;
  polled_ = now;
  const int count = poll_events();
  if (!backing_off_.empty()) retry_due(now);
  return count;
}

}  // namespace overlap::ring
