// Small groups through every order of events, large ones through seeded orders; planted faults.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdint>
#include <string>
#include <vector>

#include "ompi/mca/coll/mq/protocol/interpreter_model.hpp"
#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

namespace {

using namespace overlap::coll_mq;
using namespace overlap::coll_mq::model;

const Case two_ranks{.collectives = 3, .ahead = 3};
const Case two_ranks_shut{.collectives = 2, .shuts = 1};
const Case three_ranks{.size = 3};
const Case four_ranks{.size = 4, .collectives = 1};
const Case four_ranks_radix_4{.size = 4, .shape = {4, Flavour::send_receive}, .collectives = 1};
const Case two_streams{.ahead = 1, .streams = 2};
const Case one_way{.collectives = 4, .ahead = 4, .one_way = true};
const Case one_way_narrow{.window = 1, .collectives = 3, .ahead = 3, .one_way = true};
const Case one_way_shut{.collectives = 3, .shuts = 1, .one_way = true};
const Case one_way_three{.size = 3, .collectives = 3, .ahead = 3, .one_way = true};

TEST_CASE("every order of a small case is right") {
  std::vector<Case> cases{two_ranks, two_ranks_shut, one_way, one_way_narrow, one_way_shut};
  if (overlap::thinning == 1)  // larger ones
    cases.insert(cases.end(),
                 {three_ranks, four_ranks, four_ranks_radix_4, two_streams, one_way_three});
  for (const Case& small : cases) {
    const Outcomes outcomes = explore(small);
    INFO(small.size << " ranks, " << small.collectives << " collectives, " << small.streams
                    << " streams, " << outcomes.states << " states");
    CHECK(outcomes.fault == "");
    CHECK(outcomes.ends > 0);
  }
}

TEST_CASE("seeded orders of large cases are right") {
  for (std::uint64_t seed = 0; seed < 300; seed += overlap::thinning) {
    Dice dice(seed);
    Case large;
    large.size = 2 + static_cast<Rank>(dice.below(15));
    large.shape = {2 + static_cast<Rank>(dice.below(4)), Flavour::write_immediate};
    large.window = 1U << dice.below(4);
    large.collectives = 12;
    large.ahead = 1 + dice.below(12);
    large.streams = 1 + dice.below(2);
    large.shuts = dice.below(20);
    large.one_way = dice.one_in(3);
    INFO("seed " << seed);
    REQUIRE(walk(large, dice.next()) == "");
  }
}

TEST_CASE("planted faults are found") {
  struct Row {
    Plant plant;
    Case the_case;
  };
  const std::vector<Row> rows{
      {Plant::forget_sequence, two_ranks},
      {Plant::forget_step, one_way},
      {Plant::forget_stream, two_streams},
      {Plant::drop_kept, two_ranks},
      {Plant::drop_refused, two_ranks_shut},
      {Plant::drop_tell, one_way},
      {Plant::run_away, one_way},
      {Plant::free_early, two_ranks},
      {Plant::repeat, two_ranks},
  };
  for (std::size_t i = 0; i < rows.size(); i += overlap::thinning) {
    const Row& row = rows[i];
    INFO("plant " << static_cast<int>(row.plant));
    CHECK(explore(row.the_case).fault == "");
    CHECK(explore(row.the_case, row.plant).fault != "");
  }
}

}  // namespace
