// Barriers of all sizes are barriers; and what the checker finds when they are not.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <string>
#include <vector>

#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "ompi/mca/coll/mq/protocol/dice.hpp"
#include "ompi/mca/coll/mq/protocol/plan_check.hpp"
#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

namespace {

using namespace overlap::coll_mq;

std::vector<Plan> barrier(Rank size, BarrierShape shape) {
  std::vector<Plan> plans;
  for (Rank r = 0; r < size; ++r) plans.push_back(barrier_plan(r, size, shape));
  return plans;
}

/// Partners of a rank: k - 1 in each round, fewer in the last, and an extra rank.
std::size_t most_partners(Rank size, Rank radix) {
  std::size_t partners = 1;
  for (; size >= radix; size /= radix) partners += static_cast<std::size_t>(radix - 1);
  return partners + static_cast<std::size_t>(size - 1);
}

TEST_CASE("a barrier of any size and radix is one") {
  constexpr Rank step = overlap::thinning;
  for (Rank radix = 2; radix <= 8; ++radix) {
    for (Rank size = 1; size <= 300; size += step) {
      const auto plans = barrier(size, {radix, Flavour::write_immediate});
      INFO("size " << size << ", radix " << radix);
      REQUIRE(check::check_barrier(plans) == "");
      std::size_t partners = 0;
      Credits most{};
      for (const Plan& plan : plans) {
        const Credits credits = credits_of(plan);
        partners = std::max(partners, plan.edges.size());
        most.sends_most = std::max(most.sends_most, credits.sends_most);
        most.receives_most = std::max(most.receives_most, credits.receives_most);
        most.tasks = std::max(most.tasks, credits.tasks);
      }
      // One message each way, whatever the size: one receive, one entry.
      REQUIRE(partners <= most_partners(size, radix));
      REQUIRE(most.sends_most <= 1);
      REQUIRE(most.receives_most <= 1);
      REQUIRE(most.tasks <= 3 * partners);
    }
  }
}

TEST_CASE("recursive doubling has log2(n) partners") {
  for (Rank size : {2, 4, 8, 64, 256})
    for (const Plan& plan : barrier(size, {}))
      CHECK((std::size_t{1} << plan.edges.size()) == static_cast<std::size_t>(size));
}

TEST_CASE("both flavours differ in the kind of their sends only") {
  auto writes = barrier(13, {2, Flavour::write_immediate});
  for (Plan& plan : writes)
    for (Task& task : plan.tasks)
      if (task.kind == TaskKind::write_immediate) task.kind = TaskKind::send;
  CHECK(writes == barrier(13, {2, Flavour::send_receive}));
}

TEST_CASE("a barrier in two levels is one, and its leaders only use the network") {
  model::Dice dice(1);
  for (Rank size = 1; size <= 100; ++size) {
    const std::size_t nodes = 1 + dice.below(12);
    std::vector<Rank> node_of;
    for (Rank r = 0; r < size; ++r) node_of.push_back(static_cast<Rank>(7 * dice.below(nodes)));
    std::vector<Plan> plans;
    for (Rank r = 0; r < size; ++r) plans.push_back(two_level_barrier_plan(r, node_of));
    INFO("size " << size << ", nodes " << nodes);
    REQUIRE(check::check_barrier(plans) == "");
    for (const Plan& plan : plans)
      for (const Edge& edge : plan.edges) {
        const auto node = node_of[static_cast<std::size_t>(plan.rank)];
        const bool is_local = node_of[static_cast<std::size_t>(edge.peer)] == node;
        REQUIRE(is_local == (edge.reach == Reach::node));
        const auto leader = std::find(node_of.begin(), node_of.end(), node) - node_of.begin();
        REQUIRE((is_local || plan.rank == leader));
      }
  }
}

TEST_CASE("a plan that is wrong is found") {
  auto plans = barrier(6, {});
  const auto tasks = [&](Rank rank) -> std::vector<Task>& {
    return plans[static_cast<std::size_t>(rank)].tasks;
  };
  const auto defect = [&] { return check::check_barrier(plans); };
  REQUIRE(defect().empty());
  SECTION("a rank goes on before it waits") {
    // Rank 0 "w4 i1 w1 i2 w2 i4": tells the second partner before it knows of the first.
    std::swap(tasks(0)[2], tasks(0)[3]);
    CHECK(defect() == "rank 2 of 6 leaves before all have entered");
  }
  SECTION("an extra rank is waited for too late") {
    std::rotate(tasks(0).begin(), tasks(0).begin() + 1, tasks(0).end());
    CHECK(defect() == "rank 1 of 6 leaves before all have entered");
  }
  SECTION("both wait first") {
    std::swap(tasks(2)[0], tasks(2)[1]);
    std::swap(tasks(3)[0], tasks(3)[1]);
    CHECK(defect() == "rank 0 of 6, task 4: waits forever");
  }
  SECTION("a wait is left out") {
    tasks(2).pop_back();
    CHECK(defect() == "rank 2 of 6: a message is not waited for");
  }
  SECTION("a wait goes on from the wrong base") {
    tasks(0)[2].step = 1;
    CHECK(defect() == "rank 0 of 6: a wait has a wrong base");
  }
  SECTION("a send is left out") {
    plans[5] = PlanWriter(5, 6).take();
    CHECK(defect() == "rank 1 of 6: a receive is missing");
  }
  SECTION("a receive short") {
    plans[0].edges[1].receives = 0;
    CHECK(defect() == "rank 0 of 6: a message is not waited for");
  }
  SECTION("an extra rank is let go too early") {
    std::rotate(tasks(0).begin() + 1, tasks(0).end() - 1, tasks(0).end());
    CHECK(defect() == "rank 4 of 6 leaves before all have entered");
  }
}

}  // namespace
