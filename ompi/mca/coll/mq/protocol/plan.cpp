// Plans: how they are written, what they need, how a management queue takes them.
// SPDX-License-Identifier: BSD-3-Clause
#include "plan.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

namespace overlap::coll_mq {

namespace {

/// @throws  std::length_error: more messages on an edge than can be numbered
void count_up(std::uint16_t& count, std::uint32_t more = 1) {
  if (more > std::uint32_t{std::numeric_limits<std::uint16_t>::max()} - count)
    throw std::length_error("coll/mq: too many messages between two ranks in a collective");
  count = static_cast<std::uint16_t>(count + more);
}

}  // namespace

Credits credits_of(const Plan& plan) noexcept {
  Credits credits;
  for (const Task& task : plan.tasks) {
    if (task.kind == TaskKind::wait) credits.management += 1;
    if (is_send(task.kind)) credits.management += 1;  // its enable
    if (is_send(task.kind)) credits.tasks += 1;
  }
  credits.tasks += credits.management;
  for (const Edge& edge : plan.edges) {
    credits.sends_most = std::max<std::uint32_t>(credits.sends_most, edge.sends);
    credits.receives_most = std::max<std::uint32_t>(credits.receives_most, edge.receives);
  }
  return credits;
}

std::vector<Task> managed_tasks(const Plan& plan) {
  std::vector<Task> tasks;
  tasks.reserve(2 * plan.tasks.size());
  for (const Task& task : plan.tasks) {
    tasks.push_back(task);
    if (is_send(task.kind))
      tasks.push_back({TaskKind::send_enable, task.edge, task.step, 1, {}, {}});
  }
  return tasks;
}

PlanWriter::PlanWriter(Rank rank, Rank size, Flavour flavour) : flavour_(flavour) {
  plan_.rank = rank;
  plan_.size = size;
}

void PlanWriter::send(Rank peer, Place from) {
  const std::uint16_t edge = edge_to(peer);
  const bool immediate = from.blocks == 0 && flavour_ == Flavour::write_immediate;
  const TaskKind kind = immediate ? TaskKind::write_immediate : TaskKind::send;
  plan_.tasks.push_back({kind, edge, plan_.edges[edge].sends, 1, from, {}});
  count_up(plan_.edges[edge].sends);
}

void PlanWriter::receive(Rank peer, Place to) {
  const std::uint16_t edge = edge_to(peer);
  count_up(plan_.edges[edge].receives);
  receives_.push_back({edge, to});
}

void PlanWriter::wait(Rank peer, std::uint16_t count) {
  const std::uint16_t edge = edge_to(peer);
  plan_.tasks.push_back({TaskKind::wait, edge, waited_[edge], count, {}, {}});
  count_up(waited_[edge], count);
}

void PlanWriter::copy(Place from, Place to) {
  plan_.tasks.push_back({TaskKind::copy, 0, 0, 1, from, to});
}

void PlanWriter::reduce(Place from, Place to) {
  plan_.tasks.push_back({TaskKind::reduce, 0, 0, 1, from, to});
}

Place PlanWriter::scratch(std::uint32_t blocks, std::uint32_t like) {
  const Place place{Buffer::scratch, plan_.scratch_blocks, blocks, like};
  plan_.scratch_blocks += blocks;
  return place;
}

Plan PlanWriter::take() {
  std::uint32_t next = 0;
  for (Edge& edge : plan_.edges) {
    edge.first_receive = next;
    next += edge.receives;
  }
  plan_.receives.resize(next);
  std::vector<std::uint32_t> filled(plan_.edges.size());
  for (const Receive& receive : receives_)
    plan_.receives[plan_.edges[receive.edge].first_receive + filled[receive.edge]++] = receive.to;
  return std::move(plan_);
}

std::uint16_t PlanWriter::edge_to(Rank peer) {
  // From the end: who is talked to now was talked to last.
  for (std::size_t i = plan_.edges.size(); i-- > 0;)
    if (plan_.edges[i].peer == peer) return static_cast<std::uint16_t>(i);
  if (plan_.edges.size() >= std::numeric_limits<std::uint16_t>::max())
    throw std::length_error("coll/mq: too many peers in a collective");
  plan_.edges.push_back({peer, 0, 0, 0, Reach::network});
  waited_.push_back(0);
  return static_cast<std::uint16_t>(plan_.edges.size() - 1);
}

}  // namespace overlap::coll_mq
