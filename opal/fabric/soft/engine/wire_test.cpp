// Links and what they carry, alone.
// SPDX-License-Identifier: BSD-3-Clause
#include "wire.hpp"

#include <map>
#include <memory>
#include <random>

#include "objects.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;

namespace {

/// Runs a wire alone until all flows have ended; when each did.
struct Run {
  TimerHeap timers;
  Wire wire{timers};
  Pair owner{1};
  std::vector<std::unique_ptr<Flow>> flows;
  std::map<Flow*, Time> ended;

  Flow& start(std::uint32_t from, std::uint32_t to, std::uint64_t bytes, Time now,
              double speed = 1.0) {
    for (const std::uint32_t number : {from, to}) wire.node(number).bytes_per_ns = 1.0;
    flows.push_back(std::make_unique<Flow>(Alarm::request, owner));
    wire.start(*flows.back(), wire.node(from), wire.node(to),
               {.bytes_per_ns = speed, .latency_ns = 0, .message_ns = 0}, bytes, now);
    return *flows.back();
  }
  void run_until(Time end) {
    while (Timer* timer = timers.first()) {
      const Time now = timer->at;
      if (now > end) return;
      for (auto& flow : flows) {
        if (&flow->timer != timer) continue;
        TimerHeap::clear(*timer);
        if (flow->mark_bytes() < flow->total_bytes()) {
          wire.next_mark(*flow, now);
        } else {
          wire.stop(*flow, now);
          ended[flow.get()] = now;
        }
        break;
      }
    }
  }
};

}  // namespace

TEST_CASE("Messages share a link evenly and use all of it", "[soft][wire]") {
  Run run;
  Flow& a = run.start(0, 1, 1'000'000, 0);
  Flow& b = run.start(0, 2, 1'000'000, 0);
  run.run_until(500'000);
  Flow& c = run.start(0, 3, 1000, 500'000);
  run.run_until(never - 1);
  REQUIRE(run.ended[&c] == 500'000 + 3 * 1000);
  REQUIRE(std::abs(run.ended[&a] - 2'001'000) <= 2);
  REQUIRE(std::abs(run.ended[&b] - 2'001'000) <= 2);
}

TEST_CASE("The receiver's link is shared, too, and a slow end slows only its own message",
          "[soft][wire]") {
  Run run;
  Flow& a = run.start(0, 2, 100'000, 0);
  Flow& b = run.start(1, 2, 100'000, 0);
  Flow& slow = run.start(3, 4, 100'000, 0, 0.25);
  Flow& back = run.start(2, 0, 100'000, 0);  // full duplex
  run.run_until(never - 1);
  REQUIRE(run.ended[&a] == 200'000);
  REQUIRE(run.ended[&b] == 200'000);
  REQUIRE(run.ended[&slow] == 400'000);
  REQUIRE(run.ended[&back] == 100'000);
}

TEST_CASE("A link that is down holds its messages until it is up", "[soft][wire]") {
  Run run;
  Flow& a = run.start(0, 1, 100'000, 0);
  run.run_until(1);
  run.wire.set_down(run.wire.node(1), true, 40'000);
  REQUIRE(run.timers.first() == nullptr);
  run.wire.set_down(run.wire.node(1), false, 1'000'000);
  run.run_until(never - 1);
  REQUIRE(run.ended[&a] == 1'060'000);
}

TEST_CASE("Many random messages take as long as the link needs for their sum", "[soft][wire]") {
  Run run;
  std::mt19937 random(3);
  std::uint64_t sum = 0;
  Time now = 0;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t bytes = random() % 50'000 + 1;
    run.start(0, 1 + i % 3, bytes, now);
    sum += bytes;
    now += static_cast<Time>(random() % 10'000);
    run.run_until(now);
  }
  run.run_until(never - 1);
  REQUIRE(run.ended.size() == 300);
  Time last = 0;
  for (const auto& [flow, at] : run.ended) last = std::max(last, at);
  // The sender's link was never idle: 25 ns of each byte are always waiting. Rounding is at most
  // one ns per change of rate.
  REQUIRE(static_cast<double>(last) >= static_cast<double>(sum));
  REQUIRE(static_cast<double>(last) <= static_cast<double>(sum) + 3000);
}
