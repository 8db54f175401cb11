// Barriers in management queues: every order of small cases, seeded orders of large ones, counters
// past their width, planted faults.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <vector>

#include "ompi/mca/coll/mq/protocol/queue_model.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::coll_mq;
using namespace overlap::coll_mq::model;

const QueueCase two_ranks{.barriers = 3};
const QueueCase three_ranks{.size = 3};
const QueueCase four_ranks{.size = 4, .barriers = 1, .ahead = 1};
const QueueCase narrow{.barriers = 3, .ahead = 3, .entries = 4};

TEST_CASE("queues: every order of a small case is right") {
  for (const QueueCase& small : {two_ranks, three_ranks, four_ranks, narrow}) {
    INFO(small.size << " ranks, " << small.barriers << " barriers");
    CHECK(explore(small) == "");
  }
}

TEST_CASE("queues: seeded orders of large cases are right") {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    QueueCase large;
    large.size = 2 + static_cast<Rank>(dice.below(20));
    large.shape = {2 + static_cast<Rank>(dice.below(4)), Flavour::write_immediate};
    large.barriers = 10;
    large.ahead = 1 + static_cast<std::uint32_t>(dice.below(4));
    large.entries = 40 + static_cast<std::uint32_t>(dice.below(40));
    INFO("seed " << seed << ", size " << large.size << ", radix " << large.shape.radix);
    REQUIRE(walk(large, dice.next()) == "");
  }
}

TEST_CASE("queues: 16 bit counters go round more than once") {
  CHECK(walk({.barriers = 140'000}, 1) == "");
}

TEST_CASE("queues: planted faults are found") {
  struct Row {
    QueuePlant plant;
    QueueCase the_case;
  };
  const std::vector<Row> rows{
      {QueuePlant::enable_early, four_ranks}, {QueuePlant::enable_all, three_ranks},
      {QueuePlant::same_base, two_ranks},     {QueuePlant::one_completion, four_ranks},
      {QueuePlant::receive_short, two_ranks}, {QueuePlant::no_wrap, two_ranks},
      {QueuePlant::no_wrap_entry, two_ranks}, {QueuePlant::no_credits, narrow},
  };
  for (const Row& row : rows) {
    INFO("plant " << static_cast<int>(row.plant));
    CHECK(explore(row.the_case, row.plant) != "");
  }
}

}  // namespace
