// Plans that move data: what ends up where, for every size and root, on symbols.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ompi/mca/coll/mq/protocol/bcast_plan.hpp"
#include "ompi/mca/coll/mq/protocol/exchange_plan.hpp"
#include "ompi/mca/coll/mq/protocol/plan_check.hpp"
#include "ompi/mca/coll/mq/protocol/reduce_plan.hpp"
#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

namespace {

using namespace overlap::coll_mq;
using check::Memory;
using check::Value;

constexpr Rank most = overlap::thinning == 1 ? 65 : 17;

std::vector<Plan> plans_of(Rank size, const std::function<Plan(Rank)>& make) {
  std::vector<Plan> plans;
  for (Rank r = 0; r < size; ++r) plans.push_back(make(r));
  return plans;
}

Value symbol(Rank rank, Rank index = 0) {
  return {static_cast<std::uint32_t>(rank * 1000 + index)};
}

Value everybody(Rank size) {
  Value value;
  for (Rank r = 0; r < size; ++r) value.push_back(symbol(r)[0]);
  return value;
}

TEST_CASE("a broadcast brings each segment to everybody") {
  for (Rank radix : {2, 3, 4}) {
    for (std::uint32_t segments : {1U, 3U}) {
      for (Rank size = 1; size <= most; ++size) {
        for (Rank root = 0; root < size; ++root) {
          const auto plans = plans_of(size, [&](Rank r) {
            return bcast_plan(r, size, root, {radix, segments});
          });
          std::vector<Memory> memory(plans.size());
          std::vector<Value> sent;
          for (std::uint32_t i = 0; i < segments; ++i)
            sent.push_back(symbol(root, static_cast<Rank>(i)));
          for (Memory& one : memory) one.output.resize(segments);
          memory[static_cast<std::size_t>(root)].output = sent;
          const auto result = check::run(plans, std::move(memory));
          INFO("size " << size << ", root " << root << ", radix " << radix);
          REQUIRE(result.defect == "");
          for (const Memory& one : result.memory)
            if (one.output != sent) FAIL("a segment is missing");
        }
      }
    }
  }
}

TEST_CASE("all broadcasts of a communicator need log2(n) peers each way") {
  const Rank size = 64;
  std::set<Rank> peers;
  for (Rank root = 0; root < size; ++root)
    for (const Edge& edge : bcast_plan(5, size, root).edges) peers.insert(edge.peer);
  // 6 each way; the one half round is the same either way.
  CHECK(peers.size() == 11);
}

TEST_CASE("an allreduce combines everybody's vector at everybody") {
  for (Rank size = 1; size <= most; ++size) {
    for (const Order order : {Order::by_rank, Order::any}) {
      for (const bool in_place : {false, true}) {
        const auto plans = plans_of(size, [&](Rank r) {
          return allreduce_plan(r, size, {order, in_place});
        });
        std::vector<Memory> memory;
        for (Rank r = 0; r < size; ++r)
          memory.push_back(in_place ? Memory{{}, {symbol(r)}, true}
                                    : Memory{{symbol(r)}, {Value{}}, false});
        auto result = check::run(plans, std::move(memory));
        INFO("size " << size << ", in place " << in_place);
        REQUIRE(result.defect == "");
        for (Memory& one : result.memory) {
          if (order == Order::any) std::sort(one.output[0].begin(), one.output[0].end());
          if (one.output[0] != everybody(size)) FAIL("an operand is missing, or in a wrong place");
        }
      }
    }
  }
}

TEST_CASE("an allreduce in one step combines everybody's vector in the order of the ranks") {
  for (Rank size = 1; size <= most; ++size) {
    for (const bool in_place : {false, true}) {
      const auto plans =
          plans_of(size, [&](Rank r) { return straight_allreduce_plan(r, size, in_place); });
      std::vector<Memory> memory;
      for (Rank r = 0; r < size; ++r)
        memory.push_back(in_place ? Memory{{}, {symbol(r)}, true}
                                  : Memory{{symbol(r)}, {Value{}}, false});
      const auto result = check::run(plans, std::move(memory));
      INFO("size " << size << ", in place " << in_place);
      REQUIRE(result.defect == "");
      for (const Memory& one : result.memory)
        if (one.output[0] != everybody(size)) FAIL("an operand is missing, or in a wrong place");
    }
  }
}

TEST_CASE("an allreduce in shares combines everybody's vector in the order of the ranks") {
  for (Rank size = 1; size <= most; ++size) {
    for (const bool in_place : {false, true}) {
      const auto plans =
          plans_of(size, [&](Rank r) { return shared_allreduce_plan(r, size, in_place); });
      std::vector<Memory> memory;
      std::vector<Value> expected;
      for (Rank r = 0; r < size; ++r) {
        std::vector<Value> shares;
        Value all;
        for (Rank of = 0; of < size; ++of) {
          shares.push_back(symbol(r, of));
          all.push_back(symbol(of, r)[0]);
        }
        expected.push_back(all);
        const std::vector<Value> none(shares.size());
        memory.push_back(in_place ? Memory{{}, shares, true} : Memory{shares, none, false});
      }
      const auto result = check::run(plans, std::move(memory));
      INFO("size " << size << ", in place " << in_place);
      REQUIRE(result.defect == "");
      for (const Memory& one : result.memory)
        if (one.output != expected) FAIL("an operand is missing, or in a wrong place");
    }
  }
}

TEST_CASE("in an allreduce in shares all that meet are shares of one owner") {
  const Rank size = 5;
  for (Rank r = 0; r < size; ++r) {
    const auto owner = [&](const Place& place) {
      return place.buffer == Buffer::scratch ? place.like : place.first;
    };
    const Plan plan = shared_allreduce_plan(r, size, true);
    for (const Task& task : plan.tasks)
      if (task.kind == TaskKind::copy || task.kind == TaskKind::reduce)
        CHECK(owner(task.from) == owner(task.to));
    for (const Edge& edge : plan.edges) {
      CHECK(owner(plan.receives[edge.first_receive]) == static_cast<std::uint32_t>(r));
      CHECK(owner(plan.receives[edge.first_receive + 1]) == static_cast<std::uint32_t>(edge.peer));
    }
  }
}

TEST_CASE("a reduction combines everybody's vector at the root") {
  const Rank radix = GENERATE(2, 3, most);
  for (Rank size = 1; size <= most; ++size) {
    for (Rank root = 0; root < size; ++root) {
      for (const Order order : {Order::by_rank, Order::any}) {
        for (const bool in_place : {false, true}) {
          const auto plans = plans_of(size, [&](Rank r) {
            return reduce_plan(r, size, root, {order, in_place, radix});
          });
          std::vector<Memory> memory;
          for (Rank r = 0; r < size; ++r) {
            if (r != root) memory.push_back({{symbol(r)}, {}, false});
            if (r == root)
              memory.push_back(in_place ? Memory{{}, {symbol(r)}, true}
                                        : Memory{{symbol(r)}, {Value{}}, false});
          }
          auto result = check::run(plans, std::move(memory));
          INFO("radix " << radix << ", size " << size << ", root " << root << ", in place "
                        << in_place);
          REQUIRE(result.defect == "");
          Value& value = result.memory[static_cast<std::size_t>(root)].output[0];
          if (order == Order::any) std::sort(value.begin(), value.end());
          if (value != everybody(size)) FAIL("an operand is missing, or in a wrong place");
        }
      }
    }
  }
}

TEST_CASE("an all-to-all brings each block to its rank") {
  for (Rank size = 1; size <= most; ++size) {
    for (const auto shape : {ExchangeShape::bruck, ExchangeShape::straight}) {
      for (const bool in_place : {false, true}) {
        const auto plans =
            plans_of(size, [&](Rank r) { return alltoall_plan(r, size, shape, in_place); });
        std::vector<Memory> memory;
        for (Rank r = 0; r < size; ++r) {
          std::vector<Value> blocks;
          for (Rank to = 0; to < size; ++to) blocks.push_back(symbol(r, to));
          std::vector<Value> empty(blocks.size());
          memory.push_back(in_place ? Memory{{}, blocks, true} : Memory{blocks, empty, false});
        }
        const auto result = check::run(plans, std::move(memory));
        INFO("size " << size << ", shape " << static_cast<int>(shape) << ", in place " << in_place);
        REQUIRE(result.defect == "");
        for (Rank r = 0; r < size; ++r)
          for (Rank from = 0; from < size; ++from)
            if (result.memory[static_cast<std::size_t>(r)].output[static_cast<std::size_t>(from)] !=
                symbol(from, r))
              FAIL("a block is missing, or in a wrong place");
      }
    }
  }
}

TEST_CASE("an allgather brings each rank's block to everybody") {
  const auto shape = GENERATE(ExchangeShape::bruck, ExchangeShape::straight);
  for (Rank size = 1; size <= most; ++size) {
    for (const bool in_place : {false, true}) {
      const auto plans =
          plans_of(size, [&](Rank r) { return allgather_plan(r, size, shape, in_place); });
      std::vector<Memory> memory;
      std::vector<Value> expected;
      for (Rank r = 0; r < size; ++r) {
        Memory one{{symbol(r)}, std::vector<Value>(static_cast<std::size_t>(size)), in_place};
        if (in_place) one.output[static_cast<std::size_t>(r)] = symbol(r);
        memory.push_back(std::move(one));
        expected.push_back(symbol(r));
      }
      const auto result = check::run(plans, std::move(memory));
      INFO("size " << size << ", in place " << in_place);
      REQUIRE(result.defect == "");
      for (const Memory& one : result.memory)
        if (one.output != expected) FAIL("a block is missing, or in a wrong place");
    }
  }
}

TEST_CASE("data plans that are wrong are found") {
  std::vector<Memory> memory;
  for (Rank r = 0; r < 4; ++r) memory.push_back({{symbol(r)}, {Value{}}, false});
  auto plans = plans_of(4, [&](Rank r) { return allreduce_plan(r, 4); });
  const auto run = [&] { return check::run(plans, memory); };
  REQUIRE(run().defect == "");
  SECTION("operands change places") {
    for (Task& task : plans[0].tasks)
      if (task.kind == TaskKind::reduce) {
        std::swap(task.from, task.to);
        break;
      }
    CHECK(run().memory[0].output[0] != everybody(4));
  }
  SECTION("what was sent is changed") {
    for (Task& task : plans[3].tasks)
      if (task.kind == TaskKind::copy) task.to = task.from;
    CHECK(run().defect != "");
  }
  SECTION("a place is used before the message has come") {
    for (std::size_t i = 0; i + 1 < plans[2].tasks.size(); ++i)
      if (plans[2].tasks[i].kind == TaskKind::wait) {
        std::swap(plans[2].tasks[i], plans[2].tasks[i + 1]);
        break;
      }
    CHECK(run().defect == "rank 2 of 4, task 1: writes where a message may come in");
  }
  SECTION("two messages come into one place") {
    plans[1].receives[1] = plans[1].receives[0];
    CHECK(run().defect == "rank 1 of 4, task 0: two messages come into one place");
  }
  SECTION("a receive is too small") {
    plans[1].receives[1].blocks = 0;
    CHECK(run().defect == "rank 1 of 4, task 5: a message has another size");
  }
}

}  // namespace
