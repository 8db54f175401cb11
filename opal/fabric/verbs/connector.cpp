// What a user asks of connections, and what is reported of them. The events of librdmacm are in
// connector_events.cpp, the attributes of queue pairs in connector_attributes.cpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "connector.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "convert.hpp"

namespace overlap::fabric::verbs {
namespace {

constexpr int listen_backlog = 1024;

void erase_from(std::vector<Connection*>& list, const Connection& connection) noexcept {
  std::erase(list, &connection);
}

}  // namespace

Connector::Connector(Port& port, const VerbsOptions& options, bool atomics)
    : port_(port), options_(options), atomics_(atomics) {
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(port_.channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0)
    throw failure("cannot set up RDMA connections", errno);
  listener_.reset(raw);
  IpAddress ip = port_.ip;
  if (rdma_bind_addr(raw, ip.socket_address()) != 0 || rdma_listen(raw, listen_backlog) != 0) {
    throw failure(
        "cannot listen for RDMA connections on " + port_.ip.text() + " (" + port_.name() + ")",
        errno);
  }
}

PeerAddress Connector::own_address() const {
  return {port_.ip, port_.transport, port_.subnet_prefix, port_.name()};
}

Address Connector::address() const noexcept {
  PeerAddress own = own_address();
  own.ip.set_port(rdma_get_src_port(listener_.get()));
  return encode(own);
}

bool Connector::may_reach(const Address& peer) const noexcept {
  const auto address = decode(peer);
  return address && same_network(*address, own_address());
}

void Connector::add(Connection& connection) {
  const std::size_t count = all_.size() + 1;
  for (auto* list : {&all_, &due_}) {
    if (list->capacity() < count) list->reserve(2 * count + 16);
  }
  all_.push_back(&connection);
}

void Connector::close(Connection& connection) noexcept {
  connection.state = ConnectionState::ended;
  end(connection);
}

void Connector::remove(Connection& connection) noexcept {
  erase_from(all_, connection);
  erase_from(due_, connection);
}

Status Connector::connect(Connection& connection, const Address& peer,
                          const PrivateData& data) noexcept {
  const auto address = decode(peer);
  if (!address || data.size_bytes > private_max_bytes || connection.state != ConnectionState::fresh)
    return Status::bad_argument;
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(port_.channel.get(), &raw, &connection, RDMA_PS_TCP) != 0)
    return Status::broken;
  connection.id.reset(raw);
  connection.peer = address->ip;
  if (connection.peer.is_link_local())
    connection.peer.v6().sin6_scope_id = port_.ip.is_v4() ? 0 : port_.ip.v6().sin6_scope_id;
  connection.data = encode(data);
  connection.initiator_depth = initiator_depth_max();
  connection.responder_depth = responder_depth_max();
  apply(connection, ConnectionEvent::connect_called);
  if (!same_network(*address, own_address())) {
    apply(connection, ConnectionEvent::failed,
          "the ports are of different kinds (InfiniBand, RoCE and iWARP do not mix), on different "
          "InfiniBand subnets, or one has an IPv4 address and the other one only IPv6");
  }
  return Status::done;
}

Status Connector::accept(std::uint64_t request, Connection& connection) noexcept {
  const auto found = requests_.find(request);
  if (found == requests_.end() || connection.state != ConnectionState::fresh)
    return Status::bad_argument;
  connection.id = std::move(found->second.id);
  connection.id->context = &connection;
  connection.initiator_depth = found->second.initiator_depth;
  connection.responder_depth = found->second.responder_depth;
  requests_.erase(found);
  if (!send_answer(connection)) {
    // The peer has given up meanwhile. The queue pair is as fresh as before.
    connection.id.reset();
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_RESET;
    (void)ibv_modify_qp(connection.device_queue_pair, &attributes, IBV_QP_STATE);
    return Status::broken;
  }
  apply(connection, ConnectionEvent::accept_called);
  return Status::done;
}

void Connector::reject(std::uint64_t request) noexcept {
  const auto found = requests_.find(request);
  if (found == requests_.end()) return;
  // Our mark tells the peer that somebody said no, and not the system.
  const WireData mark = encode(PrivateData{});
  (void)rdma_reject(found->second.id.get(), mark.bytes.data(), mark.size_bytes);
  requests_.erase(found);
}

bool Connector::poll(Event& event) {
  if (take_due(event)) return true;
  read_async_events();
  if (read_news(event)) return true;
  return take_due(event);
}

void Connector::apply(Connection& connection, ConnectionEvent event, const char* why,
                      int error) noexcept {
  const ConnectionStep next = step(connection.state, event);
  if (!next.legal) return;  // late news of something that has been given up
  connection.state = next.next;
  const auto go_on = [&](bool good, const char* what) {
    if (!good) apply(connection, ConnectionEvent::failed, what, errno);
  };
  const auto report_end = [&](Event::Kind kind) {
    connection.end_due = true;
    connection.end = kind;
    connection.why = why;
    connection.error = error;
    mark_due(connection);
  };
  switch (next.action) {
    case ConnectionAction::none:
    case ConnectionAction::send_answer: return;  // accept() has sent it: it can still fail there
    case ConnectionAction::resolve_address:
      return go_on(resolve_address(connection), "there is no way to the peer's address");
    case ConnectionAction::resolve_route:
      if (!port_.has(*connection.id)) {
        return apply(connection, ConnectionEvent::failed,
                     "the way to the peer's address leads over another device");
      }
      return go_on(resolve_route(connection), "there is no route to the peer");
    case ConnectionAction::send_request:
      return go_on(send_request(connection), "the connection request could not be sent");
    case ConnectionAction::finish:
      if (!finish(connection)) return go_on(false, "the queue pair could not be made ready");
      return apply(connection, ConnectionEvent::established);
    case ConnectionAction::report_established:
      connection.established_due = true;
      connection.took_entries = true;
      connection.established_by_data = event == ConnectionEvent::data_arrived;
      return mark_due(connection);
    case ConnectionAction::report_rejected: return report_end(Event::Kind::rejected);
    case ConnectionAction::report_unreachable: return report_end(Event::Kind::unreachable);
    case ConnectionAction::report_lost: return report_end(Event::Kind::peer_lost);
  }
}

bool Connector::take_due(Event& event) {
  if (due_.empty()) return false;
  Connection& connection = *due_.front();
  event = Event{};
  event.queue_pair = connection.owner;
  if (connection.established_due) {
    event.kind = Event::Kind::established;
    connection.established_due = false;
    if (connection.established_by_data && connection.id != nullptr)
      (void)rdma_notify(connection.id.get(), IBV_EVENT_COMM_EST);
  } else {
    event.kind = connection.end;
    event.why = connection.why;
    if (connection.error != 0) event.why += std::string(": ") + std::strerror(connection.error);
    connection.end_due = false;
    end(connection);
  }
  if (!connection.end_due) due_.erase(due_.begin());
  return true;
}

void Connector::end(Connection& connection) noexcept {
  if (connection.device_queue_pair != nullptr) {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    (void)ibv_modify_qp(connection.device_queue_pair, &attributes,
                        IBV_QP_STATE);  // flushes what is posted
  }
  if (connection.id == nullptr) return;
  (void)rdma_disconnect(connection.id.get());
  connection.id.reset();
}

void Connector::mark_due(Connection& connection) noexcept {
  if (std::find(due_.begin(), due_.end(), &connection) == due_.end()) due_.push_back(&connection);
}

}  // namespace overlap::fabric::verbs
