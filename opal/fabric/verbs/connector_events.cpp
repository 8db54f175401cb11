// Events of librdmacm and of the device, as events of connections.
// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>

#include <algorithm>
#include <cerrno>

#include "connector.hpp"

namespace overlap::fabric::verbs {

struct Connector::News {
  rdma_cm_event_type type = RDMA_CM_EVENT_ADDR_ERROR;
  int status = 0;
  rdma_cm_id* id = nullptr;
  Connection* connection = nullptr;
  std::uint8_t initiator_depth = 0;
  std::uint8_t responder_depth = 0;
  std::array<std::byte, 256> data{};
  std::size_t data_bytes = 0;
};

namespace {

/// The events that carry connection parameters.
bool has_parameters(rdma_cm_event_type type) {
  return type == RDMA_CM_EVENT_CONNECT_REQUEST || type == RDMA_CM_EVENT_CONNECT_RESPONSE ||
         type == RDMA_CM_EVENT_ESTABLISHED || type == RDMA_CM_EVENT_REJECTED;
}

/// Why the peer's system said no. InfiniBand has codes of its own, iWARP gives an errno.
const char* refusal(int status) {
  constexpr int invalid_service = 8;  // IB_CM_REJ_INVALID_SERVICE_ID
  constexpr int stale = 10;           // IB_CM_REJ_STALE_CONN
  constexpr int timeout = 4;          // IB_CM_REJ_TIMEOUT
  if (status == invalid_service || status == -ECONNREFUSED)
    return "nobody listens there (has the peer's process ended?)";
  if (status == timeout) return "the peer had no time to answer";
  if (status == stale) return "the peer still knows an older connection of the same number";
  return "the peer's system or process has refused or given up";
}

}  // namespace

bool Connector::read_news(Event& event) {
  News news;
  while (due_.empty() && take_news(news)) {
    if (news.type != RDMA_CM_EVENT_CONNECT_REQUEST) {
      connection_news(news);
    } else if (request_arrived(news, event)) {
      return true;
    }
  }
  return false;
}

bool Connector::take_news(News& news) noexcept {
  news = News{};
  rdma_cm_event* raw = nullptr;
  if (rdma_get_cm_event(port_.channel.get(), &raw) != 0) return false;  // EAGAIN
  news.type = raw->event;
  news.status = raw->status;
  news.id = raw->id;
  news.connection = static_cast<Connection*>(raw->id->context);
  if (has_parameters(raw->event)) {
    const rdma_conn_param& parameters = raw->param.conn;
    news.initiator_depth = parameters.initiator_depth;
    news.responder_depth = parameters.responder_resources;
    if (parameters.private_data != nullptr) {
      news.data_bytes = std::min<std::size_t>(parameters.private_data_len, news.data.size());
      std::copy_n(static_cast<const std::byte*>(parameters.private_data), news.data_bytes,
                  news.data.begin());
    }
  }
  (void)rdma_ack_cm_event(raw);
  return true;
}

bool Connector::request_arrived(const News& news, Event& event) {
  CmId id(news.id);
  id->context = nullptr;  // it begins with the listener's
  const auto data = decode_private({news.data.data(), news.data_bytes});
  if (!data || !port_.has(*id)) {
    (void)rdma_reject(id.get(), nullptr, 0);
    return false;
  }
  const std::uint8_t initiator_depth = std::min(news.initiator_depth, initiator_depth_max());
  const std::uint8_t responder_depth = std::min(news.responder_depth, responder_depth_max());
  requests_.emplace(++last_request_, Request{std::move(id), initiator_depth, responder_depth});
  event = Event{};
  event.kind = Event::Kind::connect_request;
  event.request = last_request_;
  event.data = *data;
  return true;
}

void Connector::connection_news(const News& news) noexcept {
  if (news.connection == nullptr) return;  // a request that is not answered yet
  Connection& connection = *news.connection;
  const int error = news.status < 0 ? -news.status : 0;
  const auto failed = [&](const char* why) {
    apply(connection, ConnectionEvent::failed, why, error);
  };
  switch (news.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED: return apply(connection, ConnectionEvent::address_resolved);
    case RDMA_CM_EVENT_ROUTE_RESOLVED: return apply(connection, ConnectionEvent::route_resolved);
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
      connection.initiator_depth = std::min(connection.initiator_depth, news.initiator_depth);
      connection.responder_depth = std::min(connection.responder_depth, news.responder_depth);
      return apply(connection, ConnectionEvent::response);
    case RDMA_CM_EVENT_ESTABLISHED: return apply(connection, ConnectionEvent::established);
    case RDMA_CM_EVENT_REJECTED:
      if (decode_private({news.data.data(), news.data_bytes}))
        return apply(connection, ConnectionEvent::rejected);
      return apply(connection, ConnectionEvent::failed, refusal(news.status));
    case RDMA_CM_EVENT_ADDR_ERROR: return failed("the peer's address does not answer");
    case RDMA_CM_EVENT_ROUTE_ERROR: return failed("there is no route to the peer");
    case RDMA_CM_EVENT_UNREACHABLE: return failed("the peer does not answer");
    case RDMA_CM_EVENT_CONNECT_ERROR: return failed("the connection could not be made");
    case RDMA_CM_EVENT_DISCONNECTED:
      return apply(connection, ConnectionEvent::disconnected,
                   "the peer has closed the connection or has ended");
    case RDMA_CM_EVENT_DEVICE_REMOVAL: return failed("the RDMA device was removed");
    case RDMA_CM_EVENT_ADDR_CHANGE:  // bonding moved the address: the connection goes on
    case RDMA_CM_EVENT_TIMEWAIT_EXIT:
    case RDMA_CM_EVENT_CONNECT_REQUEST:
    case RDMA_CM_EVENT_MULTICAST_JOIN:
    case RDMA_CM_EVENT_MULTICAST_ERROR: return;
  }
}

void Connector::read_async_events() noexcept {
  pollfd ready{port_.context->async_fd, POLLIN, 0};
  while (::poll(&ready, 1, 0) > 0 && (ready.revents & POLLIN) != 0) {
    ibv_async_event event{};
    if (ibv_get_async_event(port_.context.get(), &event) != 0) return;
    const ibv_async_event copy = event;
    ibv_ack_async_event(&event);
    read_async_event(copy);
  }
}

void Connector::read_async_event(const ibv_async_event& event) noexcept {
  const auto apply_to_queue_pair = [&](ConnectionEvent what, const char* why) {
    for (Connection* connection : all_) {
      if (connection->device_queue_pair == event.element.qp) return apply(*connection, what, why);
    }
  };
  // Not a full switch: most events are news of ports and tables.
  if (event.event_type == IBV_EVENT_QP_FATAL) {
    apply_to_queue_pair(ConnectionEvent::failed, "the device reported an error of the queue pair");
  } else if (event.event_type == IBV_EVENT_QP_REQ_ERR) {
    apply_to_queue_pair(ConnectionEvent::failed, "the peer sent an invalid request");
  } else if (event.event_type == IBV_EVENT_QP_ACCESS_ERR) {
    apply_to_queue_pair(ConnectionEvent::failed, "the peer asked for memory that it may not use");
  } else if (event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED) {
    for (Connection* connection : all_) {
      if (connection->device_queue_pair == event.element.qp) connection->last_entry = true;
    }
  } else if (event.event_type == IBV_EVENT_COMM_EST) {
    apply_to_queue_pair(ConnectionEvent::data_arrived, "");
  } else if (event.event_type == IBV_EVENT_CQ_ERR) {
    fail_all("a completion queue has overflowed");
  } else if (event.event_type == IBV_EVENT_SRQ_ERR || event.event_type == IBV_EVENT_DEVICE_FATAL) {
    fail_all("the RDMA device has failed");
  }
}

void Connector::fail_all(const char* why) noexcept {
  for (Connection* connection : all_) apply(*connection, ConnectionEvent::failed, why);
}

}  // namespace overlap::fabric::verbs
