// What one rank does in a collective: pure data, made once, carried out any number of times.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "task.hpp"

namespace overlap::coll_mq {

using Rank = std::int32_t;  ///< a member's number: of the group; intercommunicators: of the union

/// How the peer's arrivals are signalled.
enum class Flavour : std::uint8_t { send_receive, write_immediate };

/// What lies between two ranks; plans say it where it matters to them.
enum class Reach : std::uint8_t { network, node };

/// The way to one peer and back: a queue pair, with a completion queue of its own for receives.
struct Edge {
  Rank peer = 0;
  std::uint16_t sends = 0;          ///< messages to the peer in one execution
  std::uint16_t receives = 0;       ///< messages from it: receives that must be posted
  std::uint32_t first_receive = 0;  ///< in Plan::receives
  Reach reach = Reach::network;

  [[nodiscard]] constexpr bool operator==(const Edge&) const noexcept = default;
};

/// The tasks of a rank, in the order of posting: one multiple work request.
///
/// All receives are posted before the first task, so a message may come at any time: its place is
/// touched by nothing else between the start and the wait that covers it. Each wait goes on from
/// the one before it on the same edge ("last" on every wait). Every message is waited for.
struct Plan {
  Rank rank = 0;
  Rank size = 1;
  std::vector<Edge> edges;
  std::vector<Task> tasks;
  std::vector<Place> receives;       ///< where messages go, in order [edge][number on the edge]
  std::uint32_t scratch_blocks = 0;  ///< how much scratch an execution needs

  [[nodiscard]] bool operator==(const Plan&) const noexcept = default;
};

/// The entries that one execution takes, known before it is posted.
struct Credits {
  std::uint32_t management = 0;     ///< waits and enables in the management queue
  std::uint32_t sends_most = 0;     ///< in the send queue of the edge that needs most
  std::uint32_t receives_most = 0;  ///< in the receive queue of the edge that needs most
  std::uint32_t tasks = 0;          ///< all together, receives left out

  [[nodiscard]] constexpr bool operator==(const Credits&) const noexcept = default;
};
[[nodiscard]] Credits credits_of(const Plan& plan) noexcept;

/// The list as a management queue takes it (P6.2): each send is posted to its queue pair, disabled,
/// and an enable behind the waits lets it go. An enable never stands before the send it is for.
/// Without copies and reductions it is what an adapter runs alone.
[[nodiscard]] std::vector<Task> managed_tasks(const Plan& plan);

/// Writes a plan task by task.
class PlanWriter {
 public:
  PlanWriter(Rank rank, Rank size, Flavour flavour = Flavour::send_receive);

  /// One message to that peer. Without payload it is of the plan's flavour.
  void send(Rank peer, Place from = {});
  /// A message of that peer will go there; its wait comes later.
  void receive(Rank peer, Place to = {});
  void wait(Rank peer, std::uint16_t count = 1);
  void copy(Place from, Place to);
  /// `to` = `from` op `to`
  void reduce(Place from, Place to);
  void set_reach(Rank peer, Reach reach) { plan_.edges[edge_to(peer)].reach = reach; }
  /// @param like  see Place
  /// @returns  a place of its own
  [[nodiscard]] Place scratch(std::uint32_t blocks, std::uint32_t like = 0);
  [[nodiscard]] Plan take();

 private:
  struct Receive {
    std::uint16_t edge = 0;
    Place to;
  };

  [[nodiscard]] std::uint16_t edge_to(Rank peer);

  Plan plan_;
  Flavour flavour_;
  std::vector<Receive> receives_;
  std::vector<std::uint16_t> waited_;  ///< [edge]
};

}  // namespace overlap::coll_mq
