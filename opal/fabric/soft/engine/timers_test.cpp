// The heap of timers.
// SPDX-License-Identifier: BSD-3-Clause
#include "timers.hpp"

#include <map>
#include <memory>
#include <random>

#include "objects.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;

TEST_CASE("The timer heap gives the earliest first, equal ones in the order of setting",
          "[soft][timers]") {
  Pair owner(1);
  TimerHeap heap;
  std::vector<std::unique_ptr<Timer>> timers;
  for (int i = 0; i < 50; ++i) timers.push_back(std::make_unique<Timer>(Alarm::start, owner));
  std::map<std::pair<Time, int>, Timer*> expected;  // the same as a sorted map
  std::map<Timer*, std::pair<Time, int>> where;
  std::mt19937 random(7);
  for (int step = 0; step < 20000; ++step) {
    Timer& timer = *timers[random() % timers.size()];
    if (const auto found = where.find(&timer); found != where.end()) {
      expected.erase(found->second);
      where.erase(found);
    }
    const Time at = random() % 4 == 0 ? never : static_cast<Time>(random() % 30);
    heap.set(timer, at);
    if (at != never) {
      where[&timer] = {at, step};
      expected[{at, step}] = &timer;
    }
    REQUIRE(timer.armed() == (at != never));
    REQUIRE(heap.first() == (expected.empty() ? nullptr : expected.begin()->second));
  }
}
