// The queue of early messages against a deque.
#include "hold_queue.hpp"

#include <deque>
#include <memory>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("HoldQueue: seeded walk against a deque, with growth at every position (P2.5)") {
  std::mt19937 random(5);
  HoldQueue<std::shared_ptr<int>> queue;
  std::deque<int> model;
  int next = 0;
  for (int i = 0; i < 100000; ++i) {
    const bool growing = i / 1000 % 2 == 0;
    if (random() % 10 < (growing ? 7U : 3U)) {
      REQUIRE(queue.try_push(std::make_shared<int>(next)));
      model.push_back(next++);
    } else if (!model.empty()) {
      const std::weak_ptr<int> front = queue.front();
      REQUIRE(*queue.front() == model.front());
      queue.pop();
      model.pop_front();
      REQUIRE(front.expired());  // what was taken out is not kept
    }
    REQUIRE(queue.size() == model.size());
    REQUIRE(queue.empty() == model.empty());
  }
  CHECK(next > 40000);
}
