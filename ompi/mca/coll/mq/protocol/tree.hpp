// The k-nomial tree of broadcasts and reductions.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

#include "plan.hpp"

namespace overlap::coll_mq {

/// One rank's place, in numbers counted from the root: a node is as far from its parent as its
/// lowest digit that is not 0 says, and its subtree is the range up to its next sibling.
struct TreePlace {
  Rank parent = -1;            ///< -1: the root
  std::vector<Rank> children;  ///< the farthest first, which have the largest subtrees
};

/// @param node  in [0, size)
[[nodiscard]] inline TreePlace tree_place(Rank node, Rank size, Rank radix) {
  TreePlace place;
  std::int64_t stride = 1;
  while (stride < size && node / stride % radix == 0) stride *= radix;
  if (node != 0) place.parent = static_cast<Rank>(node - node / stride % radix * stride);
  for (stride /= radix; stride >= 1; stride /= radix)
    for (Rank digit = radix - 1; digit > 0; --digit)
      if (node + digit * stride < size)
        place.children.push_back(static_cast<Rank>(node + digit * stride));
  return place;
}

}  // namespace overlap::coll_mq
