// The account of completion queues: what is posted never exceeds what a queue holds.
// SPDX-License-Identifier: BSD-3-Clause
#include "completion_room.hpp"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "send_queue.hpp"
#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("CompletionRoom: queue pairs get in as long as all of them fit") {
  CompletionRoom room(8 + 3 * 16, 8);
  CHECK(room.try_take(16));
  CHECK(room.try_take(16));
  CHECK_FALSE(room.try_take(17));
  CHECK(room.try_take(16));
  CHECK_FALSE(room.try_take(1));
  room.give_back(16);
  CHECK(room.try_take(16));
  CompletionRoom too_small(4, 8);
  CHECK_FALSE(too_small.try_take(1));
}

TEST_CASE("completion_entries: few queues for many peers, within the device's limit") {
  CHECK(completion_entries(0, 256, 128, 1U << 20U) == 128 + 16 * 256);
  CHECK(completion_entries(1, 256, 128, 1U << 20U) == 128 + 32 * 256);
  CHECK(completion_entries(3, 256, 128, 5000) == 5000);
  CHECK(completion_entries(0, 256, 128, 100) == 128 + 256);  // for the device to refuse
  CHECK(completion_entries(1000, 16384, 65536, UINT32_MAX) == UINT32_MAX);
}

TEST_CASE("CompletionRoom: no walk overflows a queue, failures of queue pairs included") {
  std::mt19937 random(11);
  constexpr std::uint32_t send_entries = 8, receives = 4, pairs_max = 4;
  const std::uint32_t entries = std::min(completion_entries(0, send_entries, receives, UINT32_MAX),
                                         receives + pairs_max * send_entries);
  struct Pair {
    SendQueueAccount account{send_entries};
    std::deque<bool> posted;  // signalled?
  };
  for (int walk = 0; walk < 50; ++walk) {
    CompletionRoom room(entries, receives);
    std::vector<Pair> pairs;
    std::uint32_t waiting = 0, received = 0;  // completions that nobody has polled; receives of it
    std::vector<std::size_t> order;           // of which pair each signalled one is
    for (int step = 0; step < 2000; ++step) {
      const auto choice = random() % 100;
      if (choice < 5 && room.try_take(send_entries)) pairs.emplace_back();
      REQUIRE(pairs.size() <= pairs_max);
      if (pairs.empty()) continue;
      const std::size_t which = random() % pairs.size();
      Pair& pair = pairs[which];
      if (choice < 60) {
        if (!pair.account.has_room()) continue;
        const bool signalled = pair.account.must_signal() || random() % 2 == 0;
        pair.account.posted(signalled);
        pair.posted.push_back(signalled);
        if (!signalled) continue;
        ++waiting;
        order.push_back(which);
      } else if (choice < 75 && received < receives) {
        ++received;  // its buffer is posted again when the completion was polled
        ++waiting;
      } else if (choice < 97) {
        waiting -= received;
        received = 0;
        for (std::size_t each : order) {
          REQUIRE(pairs[each].account.completed());
          while (!pairs[each].posted.front()) pairs[each].posted.pop_front();
          pairs[each].posted.pop_front();
          --waiting;
        }
        order.clear();
      } else {
        // Fails: each request that was not yet reported makes a completion of its own.
        const auto reported =
            static_cast<std::uint32_t>(std::count(order.begin(), order.end(), which));
        REQUIRE(waiting - reported + pair.posted.size() <= entries);
      }
      REQUIRE(waiting <= entries);
    }
  }
}
