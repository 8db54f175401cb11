// First in, first out, over the end of the memory and through its growth.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/ring_queue.hpp"

#include <deque>
#include <memory>
#include <random>

#include "test/support/catch.hpp"

namespace overlap {
namespace {

TEST_CASE("ring queue: the order of a deque, in any mixture of pushes and pops") {
  std::mt19937 random(1);
  RingQueue<int> queue;
  std::deque<int> expected;
  for (int step = 0; step < 20000; ++step) {
    // long phases of growth and of shrinking
    const bool push = random() % 100 < (step / 1000 % 2 == 0 ? 60U : 40U);
    if (push) {
      queue.push(step);
      expected.push_back(step);
    } else if (!expected.empty()) {
      REQUIRE(queue.front() == expected.front());
      queue.pop();
      expected.pop_front();
    }
    REQUIRE(queue.size() == expected.size());
    REQUIRE(queue.empty() == expected.empty());
  }
}

TEST_CASE("ring queue: what is popped goes at once") {
  RingQueue<std::shared_ptr<int>> queue;
  const auto item = std::make_shared<int>(1);
  queue.push(item);
  CHECK(item.use_count() == 2);
  queue.pop();
  CHECK(item.use_count() == 1);
}

TEST_CASE("ring queue: cleared, it is used again") {
  RingQueue<int> queue;
  for (int i = 0; i < 20; ++i) queue.push(i);
  queue.clear();
  CHECK(queue.empty());
  queue.push(7);
  CHECK(queue.front() == 7);
}

}  // namespace
}  // namespace overlap
