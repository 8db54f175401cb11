// What is faster, and what is slower.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/near_least.hpp"
#include "test/support/catch.hpp"

using overlap::near_least;

TEST_CASE("near_least: what is faster counts for half, what is slower for an eighth") {
  CHECK(near_least(100, 60) == 80);
  CHECK(near_least(100, 180) == 110);
  CHECK(near_least(100, 1'000'000) == 112.5F);  // taken for twice the average
}
