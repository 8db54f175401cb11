// Many ranks in one barrier, in virtual time.
// SPDX-License-Identifier: BSD-3-Clause
#include "barrier_network.hpp"

#include <algorithm>
#include <stdexcept>

#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "ompi/mca/coll/mq/protocol/tree.hpp"

namespace overlap::coll_mq::sim {

namespace {

/// A connection's memory: context, 16 send entries, 32 receive entries, 32 completions.
constexpr std::size_t connection_bytes = 256 + 16 * 64 + 32 * 16 + 32 * 32;

Plan dissemination_plan(Rank rank, Rank size, Flavour flavour) {
  PlanWriter writer(rank, size, flavour);
  for (std::int64_t distance = 1; distance < size; distance *= 2) {
    const auto from = static_cast<Rank>((rank - distance + size) % size);
    writer.receive(from);
    writer.send(static_cast<Rank>((rank + distance) % size));
    writer.wait(from);
  }
  return writer.take();
}

/// Up a binomial tree, and down again.
Plan tree_plan(Rank rank, Rank size, Flavour flavour) {
  PlanWriter writer(rank, size, flavour);
  const TreePlace place = tree_place(rank, size, 2);
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    writer.receive(*child);
    writer.wait(*child);
  }
  if (place.parent >= 0) {
    writer.receive(place.parent);
    writer.send(place.parent);
    writer.wait(place.parent);
  }
  for (const Rank child : place.children) writer.send(child);
  return writer.take();
}

}  // namespace

Plan plan_of(const Setup& setup, Rank rank) {
  switch (setup.algorithm) {
    case Algorithm::doubling: return barrier_plan(rank, setup.ranks, {2, setup.flavour});
    case Algorithm::dissemination: return dissemination_plan(rank, setup.ranks, setup.flavour);
    case Algorithm::tree: return tree_plan(rank, setup.ranks, setup.flavour);
  }
  throw std::invalid_argument("no such algorithm");
}

BarrierNetwork::BarrierNetwork(const Setup& setup) : setup_(setup) {
  // Eight nodes, as long as that is enough.
  const std::int32_t share = setup.costs.node_ranks;
  nodes_ = std::max(std::min(setup.ranks, 8), (setup.ranks + share - 1) / share);
  members_.resize(static_cast<std::size_t>(setup.ranks));
  for (Rank r = 0; r < setup.ranks; ++r) load(r, plan_of(setup, r));
  for (Rank r = 0; r < setup.ranks; ++r) {
    const Member& member = members_[static_cast<std::size_t>(r)];
    const std::uint32_t end = static_cast<std::size_t>(r) + 1 < members_.size()
                                  ? members_[static_cast<std::size_t>(r) + 1].first_peer
                                  : static_cast<std::uint32_t>(peers_.size());
    for (std::uint32_t p = member.first_peer; p < end; ++p) {
      const auto other = static_cast<std::size_t>(peers_[p].rank);
      std::uint32_t back = members_[other].first_peer;
      while (peers_[back].rank != r) ++back;
      peers_[p].edge = static_cast<std::uint8_t>(back - members_[other].first_peer);
    }
  }
  const std::int64_t in_use =
      static_cast<std::int64_t>(connections_most_) * ((setup.ranks + nodes_ - 1) / nodes_);
  const auto& costs = setup.costs;
  if (in_use > costs.contexts) miss_ = costs.miss * (in_use - costs.contexts) / in_use;
}

void BarrierNetwork::load(Rank rank, const Plan& plan) {
  if (plan.edges.size() > 64) throw std::length_error("too many peers for the simulation");
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.first_step = static_cast<std::uint32_t>(steps_.size());
  member.first_peer = static_cast<std::uint32_t>(peers_.size());
  for (const Edge& edge : plan.edges) peers_.push_back({edge.peer, 0});
  for (const Task& task : plan.tasks)
    steps_.push_back({is_send(task.kind), static_cast<std::uint8_t>(task.edge)});
  member.last = static_cast<std::uint32_t>(steps_.size());
  member.tasks = credits_of(plan).tasks;
  const std::size_t connections =
      setup_.is_dense ? static_cast<std::size_t>(setup_.ranks - 1) : plan.edges.size();
  connections_most_ = std::max(connections_most_, connections);
  const std::size_t plan_bytes = plan.tasks.size() * sizeof(Task) +
                                 plan.edges.size() * sizeof(Edge) +
                                 plan.receives.size() * sizeof(Place) + sizeof(Plan);
  memory_most_bytes_ = std::max(memory_most_bytes_, connections * connection_bytes + plan_bytes);
}

Result BarrierNetwork::run(const Program& program) {
  program_ = program;
  adapter_free_.assign(static_cast<std::size_t>(nodes_), 0);
  for (std::size_t r = 0; r < members_.size(); ++r) {
    Member& member = members_[r];
    member.next = member.first_step;
    member.arrived = 0;
    member.is_waiting = false;
    member.posted = (program.entry.empty() ? 0 : program.entry[r]) + post_cost(member);
    schedule(member.posted, static_cast<Rank>(r), What::go_on);
  }
  while (!events_.empty()) {
    const Event event = events_.top();
    events_.pop();
    Member& member = members_[static_cast<std::size_t>(event.rank)];
    if (event.what == What::enter) {
      const auto& costs = setup_.costs;
      const bool reads_entry = setup_.flavour == Flavour::send_receive;
      const Nanoseconds in = use_adapter(event.rank, event.time,
                                         costs.receive + miss_ + (reads_entry ? costs.entry : 0));
      schedule(in, event.rank, What::arrive, event.edge);
    } else if (event.what == What::arrive) {
      member.arrived |= std::uint64_t{1} << event.edge;
      if (member.is_waiting) {
        member.is_waiting = false;
        go_on(event.rank, event.time);
      }
    } else {
      go_on(event.rank, event.time);
    }
  }
  Result result{0, members_[0].done, 0, connections_most_, memory_most_bytes_};
  for (const Member& member : members_) {
    result.all_done = std::max(result.all_done, member.done);
    result.first_done = std::min(result.first_done, member.done);
    result.free += free_time(member);
  }
  result.free /= static_cast<Nanoseconds>(members_.size());
  return result;
}

void BarrierNetwork::schedule(Nanoseconds time, Rank rank, What what, std::uint8_t edge) {
  events_.push({time, order_++, rank, what, edge});
}

Nanoseconds BarrierNetwork::use_adapter(Rank rank, Nanoseconds from, Nanoseconds length) {
  Nanoseconds& free = adapter_free_[static_cast<std::size_t>(rank % nodes_)];
  return free = std::max(free, from) + length;
}

Nanoseconds BarrierNetwork::post_cost(const Member& member) const {
  const auto& costs = setup_.costs;
  return setup_.drive == Drive::processor ? costs.call
                                          : costs.post + costs.post_task * member.tasks;
}

/// When is the process in MPI, from `time` on?
Nanoseconds BarrierNetwork::in_mpi(const Member& member, Nanoseconds time) const {
  time = std::max(time, member.posted);
  // What can be done in the call that starts the barrier is done there.
  if (time == member.posted) return time;
  if (program_.quantum != 0) {
    const Nanoseconds round = program_.quantum + setup_.costs.look;
    return member.posted + (time - member.posted + round - 1) / round * round;
  }
  const Nanoseconds end =
      program_.block_end != 0 ? program_.block_end : member.posted + program_.block;
  return std::max(time, end);
}

/// One step, and the next one when this one is over: others' steps come in between.
void BarrierNetwork::go_on(Rank rank, Nanoseconds time) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const auto& costs = setup_.costs;
  if (member.next == member.last) return finish(member, time);
  const Step step = steps_[member.next];
  const bool is_adapter = setup_.drive == Drive::adapter;
  if (step.is_send) {
    ++member.next;
    return send(rank, step.edge, time);
  }
  const std::uint64_t bit = std::uint64_t{1} << step.edge;
  if ((member.arrived & bit) == 0) {
    member.is_waiting = true;
    return;
  }
  ++member.next;
  member.arrived &= ~bit;
  const Nanoseconds poll =
      setup_.flavour == Flavour::send_receive ? costs.poll_send : costs.poll_write;
  schedule(is_adapter ? use_adapter(rank, time, costs.task) : in_mpi(member, time) + poll, rank,
           What::go_on);
}

void BarrierNetwork::send(Rank rank, std::uint8_t edge, Nanoseconds time) {
  const auto& costs = setup_.costs;
  const Peer peer = peers_[members_[static_cast<std::size_t>(rank)].first_peer + edge];
  const bool is_adapter = setup_.drive == Drive::adapter;
  const Nanoseconds given = is_adapter ? use_adapter(rank, time, costs.task) : time + costs.give;
  schedule(use_adapter(rank, given, costs.send + miss_) + costs.wire, peer.rank, What::enter,
           peer.edge);
  schedule(given, rank, What::go_on);
}

void BarrierNetwork::finish(Member& member, Nanoseconds time) {
  const auto& costs = setup_.costs;
  // One look more sees it: behind the block, or at the end of a piece of work.
  member.done = (setup_.drive == Drive::adapter ? in_mpi(member, time) : time) + costs.look;
}

Nanoseconds BarrierNetwork::free_time(const Member& member) const {
  if (program_.quantum == 0) return std::min(program_.block, member.done - member.posted);
  const Nanoseconds round = program_.quantum + setup_.costs.look;
  return (member.done - member.posted) / round * program_.quantum;
}

}  // namespace overlap::coll_mq::sim
