// Connections: made when something is to be sent, one at a time for each purpose although both sides may want it (P2.7).
#include "btl_ring.hpp"

namespace overlap::ring {
namespace {

/// Who wants to connect, and for what; travels with the request.
struct Introduction {
  std::uint16_t version = layout_version;
  std::uint16_t purpose = 0;
  std::uint32_t zero = 0;
  opal_process_name_t name{};
};
static_assert(sizeof(Introduction) == 16);

fabric::PrivateData introduce(Connection::Purpose purpose) noexcept {
  Introduction introduction;
  introduction.purpose = static_cast<std::uint16_t>(purpose);
  introduction.name = OPAL_PROC_MY_NAME;
  fabric::PrivateData data;
  std::memcpy(data.bytes.data(), &introduction, sizeof introduction);
  data.size_bytes = sizeof introduction;
  return data;
}

bool mine_is_smaller(const Endpoint& endpoint) noexcept {
  return opal_compare_proc(OPAL_PROC_MY_NAME, endpoint.proc.proc_name) < 0;
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
  const bool was_under_way =
      connection.state == ConnectState::connecting || connection.state == ConnectState::accepting;
  const ConnectStep step =
      overlap::ring::step(connection.state, event, mine_is_smaller(connection.endpoint));
  if (!step.legal) {
    if (event == ConnectEvent::request) device_->reject(request);
    return;
  }
  connection.state = step.next;
  const bool under_way =
      step.next == ConnectState::connecting || step.next == ConnectState::accepting;
  connecting_ += static_cast<std::uint32_t>(under_way) - static_cast<std::uint32_t>(was_under_way);
  // A connection that was asked for ahead of its use may fail: the peer may be on its way out.
  const bool needed = connection.purpose == Connection::Purpose::bulk
                          ? !connection.endpoint.bulk_waiting.empty()
                          : !connection.endpoint.waiting.empty();
  if (step.action == ConnectAction::report_lost && was_under_way && !needed) return;
  act(connection, step.action, request, why);
}

void Transport::act(Connection& connection, ConnectAction action, std::uint64_t request,
                    const std::string& why) {
  Endpoint& endpoint = connection.endpoint;
  switch (action) {
    case ConnectAction::none: return;
    case ConnectAction::connect:
      open_queue_pair(connection);
      if (device_->connect(*connection.queue_pair, endpoint.address,
                           introduce(connection.purpose)) != fabric::Status::done) {
        connection_step(connection, ConnectEvent::lost, 0, "the device cannot connect");
      }
      return;
    case ConnectAction::drop_ours_and_accept:
      by_queue_pair_.erase(connection.queue_pair->number());
      connection.replaced = std::move(connection.queue_pair);
      [[fallthrough]];
    case ConnectAction::accept:
      open_queue_pair(connection);
      if (device_->accept(request, *connection.queue_pair) != fabric::Status::done) {
        connection_step(connection, ConnectEvent::lost, 0, "the device cannot accept a connection");
      }
      return;
    case ConnectAction::reject: device_->reject(request); return;
    case ConnectAction::flush_queue: made(connection); return;
    case ConnectAction::report_lost: report_lost(endpoint, why); return;
  }
}

std::unique_ptr<fabric::QueuePair> Transport::make_queue_pair(Connection& connection) {
  make_receive_buffers();
  try {
    auto made =
        device_->make_queue_pair({completions_.get(), receives_.get(), tunables.send_queue});
    by_queue_pair_[made->number()] = &connection;
    return made;
  } catch (const fabric::Error& error) {
    refuse_connection(connection.endpoint, error.what());  // what waits for it would wait for ever
  }
}

void Transport::open_queue_pair(Connection& connection) {
  connection.account.reset();
  connection.queue_pair = make_queue_pair(connection);
}

/// The request that we have sent to ourselves.
void Transport::accept_own(Connection& connection, std::uint64_t request) {
  connection.mirror = make_queue_pair(connection);
  if (device_->accept(request, *connection.mirror) != fabric::Status::done) {
    connection_step(connection, ConnectEvent::lost, 0, "the device cannot accept a connection");
  }
}

void Transport::made(Connection& connection) {
  ++counters().connections;
  if (tunables.verbose >= 1) {
    opal_output(
        0, "btl/ring: connected to %s for %s", OPAL_NAME_PRINT(connection.endpoint.proc.proc_name),
        connection.purpose == Connection::Purpose::messages ? "messages" : "large transfers");
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
  Introduction introduction;
  if (event.data.size_bytes < sizeof introduction) {
    device_->reject(event.request);
    return;
  }
  std::memcpy(&introduction, event.data.bytes.data(), sizeof introduction);
  opal_proc_t* proc = introduction.version == layout_version && !finalizing_
                          ? opal_proc_for_name(introduction.name)
                          : nullptr;
  Endpoint* peer =
      proc != nullptr && !departed_.contains(name_of(*proc)) ? endpoint(*proc) : nullptr;
  if (peer == nullptr) {
    device_->reject(event.request);
    return;
  }
  const bool bulk = introduction.purpose == static_cast<std::uint16_t>(Connection::Purpose::bulk);
  Connection& connection = bulk ? peer->bulk : peer->messages;
  if (proc == opal_proc_local_get()) {
    accept_own(connection, event.request);
  } else {
    connection_step(connection, ConnectEvent::request, event.request, {});
  }
}

/// What a peer has sent before its connection ended, its goodbye perhaps among it.
void Transport::take_last_messages(Endpoint& endpoint) {
  while (poll_completions() > 0) {}
  take_from_ring(endpoint);
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
        by_queue_pair_.erase(connection->queue_pair->number());
        connection->replaced = std::move(connection->queue_pair);
        connection_step(*connection, ConnectEvent::rejected, 0, {});
        break;
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

/// Tell peers that the end of their connections is meant, and wait until all that was posted to them has arrived.
///
/// Bounded in time: a peer that is gone already does not answer.
void Transport::part(std::span<Endpoint* const> peers) noexcept {
  constexpr auto longest = std::chrono::milliseconds(200);
  const auto reachable = [](const Endpoint& endpoint) {
    return !endpoint.lost && !endpoint.said_goodbye &&
           (endpoint.messages.established() || endpoint.bulk.established());
  };
  for (Endpoint* endpoint : peers) {
    if (endpoint == nullptr) continue;
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
    return endpoint != nullptr && reachable(*endpoint) &&
           (endpoint->messages.account.used() != 0 || endpoint->bulk.account.used() != 0);
  };
  const auto began = std::chrono::steady_clock::now();
  while (std::any_of(peers.begin(), peers.end(), under_way) &&
         std::chrono::steady_clock::now() - began < longest) {
    guarded([this]() -> int { return poll_completions() + poll_events(); });
  }
}

}  // namespace overlap::ring
