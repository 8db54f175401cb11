// Barriers over management queues: small cases in every order, larger ones at random.
// SPDX-License-Identifier: BSD-3-Clause
#include <random>

#include "management_model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

namespace {

using Choose = std::function<std::size_t(std::size_t)>;

struct Case {
  std::size_t ranks;
  std::size_t groups;
  std::uint32_t barriers;  ///< of each group
};

/// Every rank posts all its barriers, in an order and at times that `choose` says.
std::string run(const Case& one, const WireSettings& wire, Time task_ns, const Choose& choose,
                Plant plant = Plant::none) {
  World world(one.ranks, one.groups, wire, task_ns, plant);
  const Time pauses[] = {0, wire.latency_ns / 2 + 100, 100'000};
  for (;;) {
    std::vector<std::pair<std::size_t, std::size_t>> open;
    for (std::size_t g = 0; g < one.groups; ++g) {
      for (std::size_t r = 0; r < one.ranks; ++r) {
        if (world.member(g, r).posted < one.barriers) open.emplace_back(g, r);
      }
    }
    if (open.empty()) break;
    const auto [g, r] = open[choose(open.size())];
    world.post_barrier(g, r);
    world.run_for(pauses[choose(3)]);
    if (std::string fault = world.check(false); !fault.empty()) return fault;
  }
  world.run_for(2'000'000);
  world.machine.run();
  return world.check(true);
}

/// Follow every path of choices. @returns  the first fault
std::string explore(const Case& one, Time task_ns, std::size_t& paths) {
  struct Choice {
    std::size_t taken, of;
  };
  std::vector<Choice> path;
  for (paths = 1;; ++paths) {
    std::size_t depth = 0;
    const Choose choose = [&](std::size_t n) {
      if (n == 1) return std::size_t{0};
      if (depth == path.size()) path.push_back({0, n});
      return path[depth++].taken;
    };
    if (std::string fault = run(one, settings, task_ns, choose); !fault.empty()) return fault;
    while (!path.empty() && path.back().taken + 1 == path.back().of) path.pop_back();
    if (path.empty()) return {};
    ++path.back().taken;
  }
}

std::string simulate(std::uint32_t seed, Plant plant = Plant::none) {
  std::mt19937 random(seed);
  const Choose choose = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const Case one{2 + choose(5), 1 + choose(2), static_cast<std::uint32_t>(1 + choose(9))};
  const WireSettings wire{.bytes_per_ns = 1.0,
                          .latency_ns = static_cast<Time>(choose(3)) * 4000,
                          .message_ns = static_cast<Time>(choose(3)) * 100};
  return run(one, wire, static_cast<Time>(choose(3)) * 50, choose, plant);
}

}  // namespace

TEST_CASE("Small barriers hold in every order", "[soft][engine][management][explorer]") {
  const Case one = GENERATE(Case{2, 1, 2}, Case{2, 2, 1}, Case{3, 1, 1}, Case{4, 1, 1});
  const Time task_ns = GENERATE(0, 70);
  CAPTURE(one.ranks, one.groups, one.barriers, task_ns);
  std::size_t paths = 0;
  CHECK(explore(one, task_ns, paths).empty());
  CHECK(paths >= 100);
}

TEST_CASE("Random barriers of several groups hold", "[soft][engine][management][random]") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    REQUIRE(simulate(seed).empty());
  }
}

TEST_CASE("Planted faults are noticed", "[soft][engine][management][explorer]") {
  for (const Plant plant :
       {Plant::enable_early, Plant::wrong_base, Plant::receive_short, Plant::shared_queue,
        Plant::unmanaged, Plant::enable_short, Plant::wait_short, Plant::interleaved,
        Plant::signal_early, Plant::mixed_groups}) {
    int noticed = 0;
    for (std::uint32_t seed = 1; seed <= 60; ++seed) {
      if (!simulate(seed, plant).empty()) ++noticed;
    }
    CAPTURE(static_cast<int>(plant));
    CHECK(noticed > 0);
  }
}

TEST_CASE("Errors in the middle end every list that cannot go on",
          "[soft][engine][management][random]") {
  for (std::uint32_t seed = 1; seed <= 150; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    const std::size_t ranks = 2 + below(4);
    World world(ranks, 2, settings, 70);
    Machine& machine = world.machine;
    for (int step = 0; step < 40; ++step) {
      const std::size_t g = below(2);
      const std::size_t r = below(ranks);
      if (machine.processes[r]->alive && world.member(g, r).posted < 8) world.post_barrier(g, r);
      world.run_for(static_cast<Time>(below(8000)));
      if (step != 20) continue;
      Queue& queue = *machine.queues[below(machine.queues.size())];
      if (seed % 2 == 0) {
        machine.kill(*machine.processes[below(ranks)]);
      } else {
        queue.pair->faults.fail_next = CompletionStatus::retry_exceeded;
      }
    }
    world.run_for(2'000'000);
    machine.run();
    REQUIRE(world.check_after_error() == "");
  }
}
