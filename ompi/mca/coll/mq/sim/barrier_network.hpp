// Many ranks in one barrier, in virtual time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

#include "costs.hpp"
#include "ompi/mca/coll/mq/protocol/plan.hpp"

namespace overlap::coll_mq::sim {

enum class Drive : std::uint8_t {
  adapter,    ///< the management queue runs the list
  processor,  ///< the process does, while it is in MPI
};
enum class Algorithm : std::uint8_t { doubling, dissemination, tree };

struct Setup {
  Rank ranks = 2;
  Drive drive = Drive::adapter;
  Flavour flavour = Flavour::write_immediate;
  Algorithm algorithm = Algorithm::doubling;
  bool is_dense = false;  ///< connections to all ranks, not only to those talked to
  Costs costs{};
};

/// The plan of a rank; the two others are what processes do without queues.
[[nodiscard]] Plan plan_of(const Setup& setup, Rank rank);

/// What ranks do around a barrier.
struct Program {
  std::vector<Nanoseconds> entry;  ///< [rank]: when it calls; empty: all at 0
  Nanoseconds block = 0;           ///< it computes that long after the call, without MPI
  Nanoseconds block_end = 0;       ///< instead: until then
  Nanoseconds quantum = 0;         ///< not 0: it computes in pieces of that length, tests between
};

struct Result {
  Nanoseconds all_done = 0;           ///< the last rank knows that the barrier is over
  Nanoseconds first_done = 0;         ///< the first one does
  Nanoseconds free = 0;               ///< mean time that a rank has computed meanwhile
  std::size_t connections_most = 0;   ///< of a rank
  std::size_t memory_most_bytes = 0;  ///< of a rank: connections, queues, plan
};

/// Adapters, shared by the ranks of a node, do one thing at a time; a message takes `wire`.
/// Ranks are dealt to nodes in turn.
class BarrierNetwork {
 public:
  explicit BarrierNetwork(const Setup& setup);
  [[nodiscard]] Result run(const Program& program = {});

 private:
  struct Step {
    bool is_send = false;
    std::uint8_t edge = 0;
  };
  struct Peer {
    Rank rank = 0;
    std::uint8_t edge = 0;  ///< of this connection at the peer
  };
  struct Member {
    std::uint32_t first_step = 0;
    std::uint32_t first_peer = 0;
    std::uint32_t next = 0;  ///< step
    std::uint32_t last = 0;
    std::uint32_t tasks = 0;
    std::uint64_t arrived = 0;  ///< by edge: messages that have come and are not waited for
    Nanoseconds posted = 0;
    Nanoseconds done = 0;
    bool is_waiting = false;
  };
  enum class What : std::uint8_t { go_on, enter, arrive };
  struct Event {
    Nanoseconds time = 0;
    std::uint64_t order = 0;
    Rank rank = 0;
    What what{};
    std::uint8_t edge = 0;
    bool operator>(const Event& other) const noexcept {
      return time != other.time ? time > other.time : order > other.order;
    }
  };

  void load(Rank rank, const Plan& plan);
  void schedule(Nanoseconds time, Rank rank, What what, std::uint8_t edge = 0);
  [[nodiscard]] Nanoseconds use_adapter(Rank rank, Nanoseconds from, Nanoseconds length);
  [[nodiscard]] Nanoseconds in_mpi(const Member& member, Nanoseconds time) const;
  [[nodiscard]] Nanoseconds post_cost(const Member& member) const;
  void go_on(Rank rank, Nanoseconds time);
  void send(Rank rank, std::uint8_t edge, Nanoseconds time);
  void finish(Member& member, Nanoseconds time);
  [[nodiscard]] Nanoseconds free_time(const Member& member) const;

  Setup setup_;
  Program program_;
  std::int32_t nodes_ = 1;
  Nanoseconds miss_ = 0;  ///< mean cost of a message's contexts
  std::size_t connections_most_ = 0;
  std::size_t memory_most_bytes_ = 0;
  std::vector<Member> members_;
  std::vector<Step> steps_;
  std::vector<Peer> peers_;
  std::vector<Nanoseconds> adapter_free_;  ///< [node]
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  std::uint64_t order_ = 0;
};

}  // namespace overlap::coll_mq::sim
