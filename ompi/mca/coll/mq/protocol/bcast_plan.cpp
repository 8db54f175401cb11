// Broadcasts as plans.
// SPDX-License-Identifier: BSD-3-Clause
#include "bcast_plan.hpp"

#include "tree.hpp"

namespace overlap::coll_mq {

Plan bcast_plan(Rank rank, Rank size, Rank root, BcastShape shape) {
  PlanWriter writer(rank, size);
  const auto rank_of = [&](Rank node) {
    return static_cast<Rank>((std::int64_t{node} + root) % size);
  };
  const Rank node = rank >= root ? rank - root : rank - root + size;
  const TreePlace place = tree_place(node, size, shape.radix);
  for (std::uint32_t segment = 0; segment < shape.segments; ++segment) {
    const Place block{Buffer::output, segment, 1};
    if (place.parent >= 0) {
      writer.receive(rank_of(place.parent), block);
      writer.wait(rank_of(place.parent));
    }
    for (const Rank child : place.children) writer.send(rank_of(child), block);
  }
  return writer.take();
}

}  // namespace overlap::coll_mq
