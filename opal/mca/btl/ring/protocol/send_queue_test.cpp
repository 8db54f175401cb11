// The account of a send queue: never overrun, never stuck.
// SPDX-License-Identifier: BSD-3-Clause
#include "send_queue.hpp"

#include <algorithm>
#include <deque>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("SendQueueAccount: half of the queue goes without a signal (P2.3)") {
  SendQueueAccount account(8);
  for (int i = 1; i <= 8; ++i) {
    REQUIRE(account.has_room());
    CHECK(account.must_signal() == (i % 4 == 0));
    account.posted(account.must_signal());
  }
  CHECK_FALSE(account.has_room());
  CHECK(account.completed());
  CHECK(account.used() == 4);
  CHECK(account.has_room());
  CHECK(account.completed());
  CHECK(account.used() == 0);
  CHECK_FALSE(account.completed());
  account.posted(false);
  account.posted(true);
  account.reset();
  CHECK(account.used() == 0);
  CHECK_FALSE(account.completed());
}

TEST_CASE("SendQueueAccount: seeded walk against a list of entries, every size (P2.3)") {
  std::mt19937 random(7);
  for (std::uint32_t entries = 1; entries <= 33; ++entries) {
    CAPTURE(entries);
    SendQueueAccount account(entries);
    std::deque<bool> queue;  // of each entry: is it signalled?
    std::uint32_t posted = 0;
    std::uint32_t signalled = 0;
    for (int i = 0; i < 5000; ++i) {
      if (random() % 2 && account.has_room()) {
        const bool signal = account.must_signal() || random() % 16 == 0;
        account.posted(signal);
        queue.push_back(signal);
        ++posted;
        signalled += signal ? 1 : 0;
      } else if (random() % 4 == 0) {
        bool any = false;
        while (!queue.empty() && !any) any = queue.front(), queue.pop_front();
        if (any) {
          REQUIRE(account.completed());
        } else {  // all that were left are unsignalled: they stay until a later one completes
          for (std::uint32_t k = 0; k < account.used(); ++k) queue.push_back(false);
          REQUIRE_FALSE(account.completed());
        }
      }
      REQUIRE(account.used() == queue.size());
      REQUIRE(account.used() <= entries);
      // Never stuck: a full queue has a signalled entry under way.
      if (!account.has_room()) REQUIRE(std::find(queue.begin(), queue.end(), true) != queue.end());
    }
    CHECK(posted > entries);
    if (entries >= 32) CHECK(signalled * 4 < posted);
  }
}
