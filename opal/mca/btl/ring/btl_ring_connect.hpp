// Connections: made when something is to be sent, one at a time for each purpose although both
// sides may want it (P2.7).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/connect.hpp"
#include "protocol/introduction.hpp"
#include "protocol/left_events.hpp"

#include "btl_ring_endpoint.hpp"
#include "btl_ring_peers.hpp"
#include "btl_ring_queue_pairs.hpp"
#include "btl_ring_upper.hpp"

namespace overlap::ring {

/// What follows from a change of a connection. Called seldom.
class ConnectionObserver {
 public:
  /// Something may have waited for it.
  virtual void on_established(Connection& connection) = 0;
  /// A connection has ended: take what the peer has sent before.
  virtual void take_last_messages(Endpoint& endpoint) = 0;

 protected:
  ~ConnectionObserver() = default;
};

/// Makes and ends the connections of all peers, as the machine of protocol/connect.hpp says; the
/// only writer of Connection::state. Polls the device's events, seldom: that may be a system call.
///
/// @thread  Guard held
class Connector {
 public:
  /// All outlive it.
  Connector(fabric::Device& device, Peers& peers, QueuePairs& queue_pairs, UpperLayer& upper,
            ConnectionObserver& observer) noexcept
      : device_(device),
        peers_(peers),
        queue_pairs_(queue_pairs),
        upper_(upper),
        observer_(observer) {}
  Connector(const Connector&) = delete;
  Connector& operator=(const Connector&) = delete;

  /// Something is to be sent through it.
  void want(Connection& connection);
  /// End a connection whose peer is given up. Nothing is reported.
  void abandon(Connection& connection) noexcept;

  /// @returns  events handled
  int poll_events();
  /// The same in a thread that is none of MPI's, and so must not ask Open MPI for processes nor end
  /// jobs: it sees to connections that are being made, with processes that an endpoint is there
  /// for. The rest is left to poll_events(), and what comes behind it for the same process.
  int poll_events_in_thread();
  /// Will something that waits be tried again after a time, of which no event tells?
  [[nodiscard]] bool awaits_retry() const noexcept;
  /// Whose calls follow: with `in_thread` poll_events() is poll_events_in_thread(), as other parts
  /// call it, too.
  void set_caller(bool in_thread) noexcept { in_thread_ = in_thread; }
  /// The same for each call of progress, most of which do not poll.
  int poll_events_when_due() {
    const std::uint32_t between = connecting_ > 0 ? calls_between_connecting : calls_between;
    return ++calls_ >= between ? poll_events_timed() : 0;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::uint32_t calls_between = 32;
  static constexpr std::uint32_t calls_between_connecting = 4;

  void step(Connection& connection, ConnectEvent event, std::uint64_t request,
            const std::string& why);
  void act(Connection& connection, ConnectAction action, std::uint64_t request,
           const std::string& why);
  void ask_for(Connection& connection);
  [[nodiscard]] bool try_open_queue_pair(Connection& connection, std::uint64_t request);
  [[nodiscard]] ConnectEvent failure_for_good() const noexcept;
  void accept_own(Connection& connection, std::uint64_t request);
  void made(Connection& connection);
  struct Happened {
    fabric::Event event;
    std::uint32_t queue_pair_number = 0;  ///< 0: connect_request
  };
  [[nodiscard]] bool try_next(Happened& next);
  void handle(const Happened& happened);
  [[nodiscard]] bool try_handle_in_thread(const Happened& happened);
  [[nodiscard]] std::optional<std::uint64_t> process_of(const Happened& happened) const;
  [[nodiscard]] std::optional<Introduction> introduction_of(const fabric::Event& request) const;
  void on_request(const fabric::Event& event);
  void on_request_of(Endpoint& peer, const fabric::Event& event, const Introduction& introduction);
  void set_clock(Connection& connection, const std::string& why);
  void retry_due(Clock::time_point now);
  [[nodiscard]] int poll_events_timed();

  fabric::Device& device_;
  Peers& peers_;
  QueuePairs& queue_pairs_;
  UpperLayer& upper_;
  ConnectionObserver& observer_;
  std::uint32_t connecting_ = 0;          ///< connections under way: poll events often
  LeftEvents<Happened> left_;             ///< by poll_events_in_thread()
  bool in_thread_ = false;                ///< see set_caller()
  std::vector<Connection*> backing_off_;  ///< attempts that are due some time
  std::uint32_t calls_ = 0;               ///< of progress, since events were due
  Clock::time_point polled_;              ///< events, the last time
};

}  // namespace overlap::ring
