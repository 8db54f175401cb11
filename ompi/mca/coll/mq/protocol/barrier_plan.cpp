// Barriers as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "barrier_plan.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree.hpp"

namespace overlap::coll_mq {

namespace {

/// Of the tree inside a node.
constexpr Rank node_radix = 8;

/// One round among members that differ in one digit only: a member's place in its group decides
/// whom it signals first, so that none gets all signals at once.
void exchange(PlanWriter& writer, Rank member, Rank stride, Rank group, const auto& rank_of) {
  const Rank digit = member / stride % group;
  const auto other = [&](Rank step) {
    return rank_of(member + ((digit + step) % group - digit) * stride);
  };
  for (Rank step = 1; step < group; ++step) {
    writer.receive(other(step));
    writer.send(other(step));
  }
  for (Rank step = group - 1; step > 0; --step) writer.wait(other(step));
}

/// @param rank_of  a member's rank
void write_barrier(PlanWriter& writer, Rank member, Rank members, Rank radix, const auto& rank_of) {
  std::int64_t power = 1;
  while (power * radix <= members) power *= radix;
  const auto last_group = static_cast<Rank>(members / power);
  const auto regular = static_cast<Rank>(power * last_group);
  if (member >= regular) {
    const Rank partner = rank_of(member - regular);
    writer.receive(partner);
    writer.send(partner);
    writer.wait(partner);
    return;
  }
  const bool has_extra = member + regular < members;
  if (has_extra) {
    writer.receive(rank_of(member + regular));
    writer.wait(rank_of(member + regular));
  }
  std::int64_t stride = 1;
  for (; stride < power; stride *= radix)
    exchange(writer, member, static_cast<Rank>(stride), radix, rank_of);
  exchange(writer, member, static_cast<Rank>(stride), last_group, rank_of);
  if (has_extra) writer.send(rank_of(member + regular));
}

/// The ranks of one node, and the first rank of every node.
struct Node {
  std::vector<Rank> ranks;
  std::vector<Rank> leaders;
};

Node node_around(Rank rank, std::span<const Rank> node_of) {
  Node node;
  std::vector<Rank> nodes(node_of.begin(), node_of.end());
  std::sort(nodes.begin(), nodes.end());
  std::vector<bool> has_leader(nodes.size());
  for (std::size_t r = 0; r < node_of.size(); ++r) {
    if (node_of[r] == node_of[static_cast<std::size_t>(rank)])
      node.ranks.push_back(static_cast<Rank>(r));
    const auto number = std::lower_bound(nodes.begin(), nodes.end(), node_of[r]) - nodes.begin();
    auto led = has_leader[static_cast<std::size_t>(number)];
    if (!led) node.leaders.push_back(static_cast<Rank>(r));
    led = true;
  }
  return node;
}

Rank index_in(const std::vector<Rank>& ranks, Rank rank) {
  return static_cast<Rank>(std::find(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

}  // namespace

Plan barrier_plan(Rank rank, Rank size, BarrierShape shape) {
  PlanWriter writer(rank, size, shape.flavour);
  write_barrier(writer, rank, size, shape.radix, [](Rank r) { return r; });
  return writer.take();
}

Plan two_level_barrier_plan(Rank rank, std::span<const Rank> node_of, BarrierShape shape) {
  const Node node = node_around(rank, node_of);
  const auto neighbour = [&](Rank n) { return node.ranks[static_cast<std::size_t>(n)]; };
  const auto leader = [&](Rank n) { return node.leaders[static_cast<std::size_t>(n)]; };
  const TreePlace place =
      tree_place(index_in(node.ranks, rank), static_cast<Rank>(node.ranks.size()), node_radix);

  PlanWriter writer(rank, static_cast<Rank>(node_of.size()), shape.flavour);
  for (auto child = place.children.rbegin(); child != place.children.rend(); ++child) {
    writer.receive(neighbour(*child));
    writer.wait(neighbour(*child));
    writer.set_reach(neighbour(*child), Reach::node);
  }
  if (place.parent >= 0) {
    const Rank parent = neighbour(place.parent);
    writer.receive(parent);
    writer.send(parent);
    writer.wait(parent);
    writer.set_reach(parent, Reach::node);
  } else {
    write_barrier(writer, index_in(node.leaders, rank), static_cast<Rank>(node.leaders.size()),
                  shape.radix, leader);
  }
  for (const Rank child : place.children) writer.send(neighbour(child));
  return writer.take();
}

}  // namespace overlap::coll_mq
