// Which blocks are read together.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/near_blocks.hpp"
#include "test/support/catch.hpp"

#include <vector>

using namespace overlap::newrma;

TEST_CASE("near blocks: as many as lie close together in the room") {
  const std::vector<Block> rows{{0, 16}, {64, 16}, {128, 16}, {192, 16}};
  CHECK(near_blocks(rows, 1000) == 4);
  CHECK(near_blocks(rows, 208) == 4);
  CHECK(near_blocks(rows, 207) == 3);
  CHECK(near_blocks(rows, 16) == 1);
  CHECK(near_blocks({}, 1000) == 0);
  CHECK(near_blocks(std::vector<Block>{{0, 5000}}, 100) == 1);  // it is cut
}

TEST_CASE("near blocks: not over long gaps, backwards or twice over the same bytes") {
  // A gap that may be a page of its own, which need not be memory.
  CHECK(near_blocks(std::vector<Block>{{0, 4096}, {8192, 16}}, 1 << 20) == 1);
  CHECK(near_blocks(std::vector<Block>{{0, 16}, {16 + gap_max_bytes, 1}}, 1 << 20) == 2);
  CHECK(near_blocks(std::vector<Block>{{0, 16}, {17 + gap_max_bytes, 1}}, 1 << 20) == 1);
  CHECK(near_blocks(std::vector<Block>{{64, 16}, {0, 16}}, 1 << 20) == 1);
  CHECK(near_blocks(std::vector<Block>{{0, 16}, {8, 16}}, 1 << 20) == 1);
}
