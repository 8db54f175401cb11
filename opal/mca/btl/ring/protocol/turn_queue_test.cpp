// Work in turn: each item once, also when bodies come back, push and remove.
// SPDX-License-Identifier: BSD-3-Clause
#include "turn_queue.hpp"

#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("a body that serves the queue again leaves nothing to do twice") {
  TurnQueue<int> queue;
  for (int i = 0; i < 5; ++i) queue.push(i);
  std::vector<int> done;
  const auto body = [&](auto& self, int item) -> void {
    done.push_back(item);
    if (item == 1) queue.serve([&](int inner) { self(self, inner); });
  };
  CHECK(queue.serve([&](int item) { body(body, item); }) == 2);
  CHECK(done == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(queue.empty());
}

TEST_CASE("what a body pushes has its turn in the next call") {
  TurnQueue<int> queue;
  queue.push(7);
  int times = 0;
  const auto again = [&](int item) {
    ++times;
    queue.push(item);
  };
  CHECK(queue.serve(again) == 1);
  CHECK(queue.serve(again) == 1);
  CHECK(times == 2);
  CHECK_FALSE(queue.empty());
}

TEST_CASE("what a body removes is not worked on") {
  TurnQueue<int> queue;
  for (int i = 0; i < 4; ++i) queue.push(i);
  std::vector<int> done;
  queue.serve([&](int item) {
    done.push_back(item);
    queue.remove(item + 1);
  });
  CHECK(done == std::vector<int>{0, 2});
}
