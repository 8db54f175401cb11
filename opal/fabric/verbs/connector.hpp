// Connections: librdmacm's event channel, the listener, and what is under way. It has no thread:
// poll() drives everything.
//
// Timeouts: the option bounds what the hosts do, finding address and route. Once the request is out
// there is no bound of ours, for the peer's process may compute for a long time before it looks for
// requests: its kernel answers that it has to be waited for, and where no kernel answers the
// connection manager's own retries end after about a minute.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <unordered_map>
#include <vector>

#include "connection_state.hpp"
#include "port.hpp"

namespace overlap::fabric::verbs {

/// The connection of one queue pair.
struct Connection {
  ibv_qp* device_queue_pair = nullptr;
  QueuePair* owner = nullptr;            ///< named in events
  unsigned remote_rights = access::any;  ///< of the peer
  CmId id;
  ConnectionState state = ConnectionState::fresh;

  // While it is being made
  IpAddress peer;
  WireData data;
  std::uint8_t initiator_depth = 0;  ///< reads and atomics of this side that may be under way
  std::uint8_t responder_depth = 0;  ///< of the other side

  bool took_entries = false;  ///< was established: messages may have taken receive entries
  bool last_entry = false;    ///< the device has said that it takes and reports no more of them

  // What poll() has still to report: established first
  bool established_due = false;
  bool established_by_data =
      false;  ///< the last message of the connection protocol is still missing
  bool end_due = false;
  Event::Kind end = Event::Kind::unreachable;
  const char* why = "";  ///< a literal
  int error = 0;         ///< errno, or 0
};

/// @thread  the device's
class Connector {
 public:
  /// Listen on a free TCP-like port of the port's IP address. @throws Error
  Connector(Port& port, const VerbsOptions& options, bool atomics);

  [[nodiscard]] Address address() const noexcept;
  /// Take a fresh connection in, with room for its events: none of them needs memory later.
  void add(Connection& connection);
  /// End it: requests that are posted are flushed, the peer is told.
  void close(Connection& connection) noexcept;
  /// Leave no trace of it.
  void remove(Connection& connection) noexcept;
  /// What the device has to tell of its queue pairs.
  void read_async_events() noexcept;

  [[nodiscard]] Status connect(Connection& connection, const Address& peer,
                               const PrivateData& data) noexcept;
  [[nodiscard]] Status accept(std::uint64_t request, Connection& connection) noexcept;
  void reject(std::uint64_t request) noexcept;
  [[nodiscard]] bool poll(Event& event);

  [[nodiscard]] bool may_reach(const Address& peer) const noexcept;
  /// Something happened to a connection: take the step, do what it asks for. Never allocates.
  void apply(Connection& connection, ConnectionEvent event, const char* why = "",
             int error = 0) noexcept;

 private:
  struct Request {
    CmId id;
    std::uint8_t initiator_depth;
    std::uint8_t responder_depth;
  };
  struct News;  // a copy of librdmacm's event, which must be handed back before its identifier may
                // be destroyed

  [[nodiscard]] PeerAddress own_address() const;
  [[nodiscard]] bool take_due(Event& event);
  void end(Connection& connection) noexcept;
  void mark_due(Connection& connection) noexcept;

  /// Until there is something to report. @returns  true when that is a connection request, now in
  /// `event`
  [[nodiscard]] bool read_news(Event& event);
  [[nodiscard]] bool take_news(News& news) noexcept;
  [[nodiscard]] bool request_arrived(const News& news, Event& event);
  void connection_news(const News& news) noexcept;
  void read_async_event(const ibv_async_event& event) noexcept;
  void fail_all(const char* why) noexcept;

  [[nodiscard]] std::uint8_t initiator_depth_max() const noexcept;
  [[nodiscard]] std::uint8_t responder_depth_max() const noexcept;
  [[nodiscard]] bool resolve_address(Connection& connection) noexcept;
  [[nodiscard]] bool resolve_route(Connection& connection) noexcept;
  [[nodiscard]] bool send_request(Connection& connection) noexcept;
  [[nodiscard]] bool finish(Connection& connection) noexcept;
  [[nodiscard]] bool send_answer(Connection& connection) noexcept;
  /// The queue pair's next state with librdmacm's attributes and ours.
  [[nodiscard]] bool modify(Connection& connection, ibv_qp_state state) noexcept;
  void add_ours(const Connection& connection, ibv_qp_attr& attributes, int& mask) const noexcept;
  [[nodiscard]] rdma_conn_param parameters(const Connection& connection) const noexcept;

  Port& port_;
  VerbsOptions options_;
  bool atomics_;
  CmId listener_;
  std::vector<Connection*> all_;  ///< between add() and remove()
  std::vector<Connection*> due_;  ///< each at most once; room for all
  std::unordered_map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
};

}  // namespace overlap::fabric::verbs
