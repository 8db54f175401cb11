// Which plan each size has.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/coll/mq/protocol/barrier_plan.hpp"
#include "ompi/mca/coll/mq/protocol/bcast_plan.hpp"
#include "ompi/mca/coll/mq/protocol/plan_choice.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::coll_mq;

constexpr Rank few = 8;
constexpr std::uint64_t kib = 1024;

/// Times that a rank waits for others before it can go on sending.
int steps_of(const Plan& plan) {
  int steps = 0;
  bool waits = false;
  for (const Task& task : plan.tasks) {
    if (is_send(task.kind) && std::exchange(waits, false)) ++steps;
    if (task.kind == TaskKind::wait) waits = true;
  }
  return steps + (waits ? 1 : 0);
}

TEST_CASE("which plan an allreduce has") {
  struct Row {
    Rank size;
    std::uint64_t bytes;
    AllreduceShape shape;
  };
  const auto row = GENERATE(
      Row{2, 8, AllreduceShape::doubling}, Row{2, 64 * kib, AllreduceShape::doubling},
      Row{3, 8, AllreduceShape::straight}, Row{8, kib, AllreduceShape::straight},
      Row{8, kib + 1, AllreduceShape::doubling}, Row{9, 8, AllreduceShape::doubling},
      Row{3, 24 * kib - 3, AllreduceShape::doubling}, Row{3, 24 * kib, AllreduceShape::shares},
      Row{8, 64 * kib, AllreduceShape::shares}, Row{9, 64 * kib, AllreduceShape::doubling},
      Row{64, 512 * kib, AllreduceShape::shares}, Row{65, 1024 * kib, AllreduceShape::doubling});
  CAPTURE(row.size, row.bytes);
  const auto share = row.bytes / static_cast<std::uint64_t>(row.size);
  CHECK(choose_allreduce(row.size, few, row.bytes, share) == row.shape);
}

TEST_CASE("which plan an exchange has") {
  CHECK(choose_exchange(8, few, 1) == ExchangeShape::straight);
  CHECK(choose_exchange(9, few, kib - 1) == ExchangeShape::bruck);
  CHECK(choose_exchange(9, few, kib) == ExchangeShape::straight);
  CHECK(choose_exchange(64, few, kib) == ExchangeShape::straight);
  CHECK(choose_exchange(65, few, 64 * kib) == ExchangeShape::bruck);
}

TEST_CASE("which tree a collective with a root has") {
  CHECK(choose_tree_radix(1, few, 8) == 2);
  CHECK(choose_tree_radix(8, few, kib) == 8);
  CHECK(choose_tree_radix(8, few, kib + 1) == 2);
  CHECK(choose_tree_radix(9, few, 8) == 2);
}

TEST_CASE("which radix a barrier has") {
  CHECK(choose_barrier_radix(8, few, 2) == 8);
  CHECK(choose_barrier_radix(9, few, 2) == 2);
  CHECK(choose_barrier_radix(4, few, 16) == 16);
  CHECK(choose_barrier_radix(8, 0, 3) == 3);
}

TEST_CASE("among few ranks there is one step, and none waits in between") {
  for (Rank size = 2; size <= few; ++size) {
    for (Rank r = 0; r < size; ++r) {
      CAPTURE(size, r);
      CHECK(steps_of(barrier_plan(r, size, {.radix = choose_barrier_radix(size, few, 2)})) == 1);
      CHECK(steps_of(alltoall_plan(r, size, choose_exchange(size, few, 8))) == 1);
      CHECK(steps_of(allgather_plan(r, size, choose_exchange(size, few, 8))) == 1);
      CHECK(steps_of(straight_allreduce_plan(r, size)) == 1);
      CHECK(steps_of(shared_allreduce_plan(r, size)) == 2);
      const Rank radix = choose_tree_radix(size, few, 8);
      for (Rank root = 0; root < size; ++root) {
        CHECK(steps_of(bcast_plan(r, size, root, {.radix = radix})) == (r == root ? 0 : 1));
        CHECK(steps_of(reduce_plan(r, size, root, {.order = Order::any, .radix = radix})) ==
              (r == root ? 1 : 0));
      }
    }
  }
}

}  // namespace
