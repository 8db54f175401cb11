// Barriers as plans: the task lists of small groups.
// SPDX-License-Identifier: BSD-3-Clause
#include <string>

#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::coll_mq;

/// "s1 w1": send to 1, wait for 1; "i": write with immediate; "e": enable the send to.
std::string to_text(const Plan& plan, const std::vector<Task>& tasks) {
  std::string text;
  for (const Task& task : tasks) {
    if (!text.empty()) text += ' ';
    const char letters[] = {'s', 'r', 'i', 'w', 'e', 'E', 'c', 'o'};
    text += letters[static_cast<std::size_t>(task.kind)];
    text += std::to_string(plan.edges[task.edge].peer);
  }
  return text;
}

std::string tasks_of(Rank rank, Rank size, BarrierShape shape = {}) {
  const Plan plan = barrier_plan(rank, size, shape);
  return to_text(plan, plan.tasks);
}

TEST_CASE("four ranks have the task lists of the paper") {
  const BarrierShape shape{2, Flavour::send_receive};
  CHECK(tasks_of(0, 4, shape) == "s1 w1 s2 w2");
  CHECK(tasks_of(1, 4, shape) == "s0 w0 s3 w3");
  CHECK(tasks_of(2, 4, shape) == "s3 w3 s0 w0");
  CHECK(tasks_of(3, 4, shape) == "s2 w2 s1 w1");
  CHECK(tasks_of(3, 4) == "i2 w2 i1 w1");
}

TEST_CASE("an extra rank signals first and is signalled last") {
  CHECK(tasks_of(0, 6) == "w4 i1 w1 i2 w2 i4");
  CHECK(tasks_of(4, 6) == "i0 w0");
  CHECK(tasks_of(2, 6) == "i3 w3 i0 w0");
}

TEST_CASE("one rank has nothing to do") { CHECK(tasks_of(0, 1).empty()); }

TEST_CASE("a round of radix k signals all others of its group before it waits") {
  CHECK(tasks_of(0, 3, {3}) == "i1 i2 w2 w1");
  CHECK(tasks_of(1, 3, {3}) == "i2 i0 w0 w2");
  // Four is the largest power of four in eleven; two groups of four, and three extra ranks.
  CHECK(tasks_of(1, 11, {4}) == "w9 i2 i3 i0 w0 w3 w2 i5 w5 i9");
}

TEST_CASE("a management queue enables each send behind the waits before it") {
  const Plan plan = barrier_plan(0, 6);
  CHECK(to_text(plan, managed_tasks(plan)) == "w4 i1 e1 w1 i2 e2 w2 i4 e4");
  CHECK(credits_of(plan) == Credits{6, 1, 1, 9});
}

}  // namespace
