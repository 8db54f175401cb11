// Which requests of a send queue are still to be reported.
// SPDX-License-Identifier: BSD-3-Clause
#include "posted_requests.hpp"

#include <deque>
#include <random>

#include "test/support/catch.hpp"

using overlap::fabric::verbs::PostedRequests;

namespace {

std::vector<std::uint64_t> flushed(PostedRequests& requests) {
  std::vector<std::uint64_t> ids;
  requests.flush([&](std::uint64_t id) { ids.push_back(id); });
  return ids;
}

}  // namespace

TEST_CASE("A success stands for the unsignalled requests before it", "[verbs]") {
  PostedRequests requests(4);
  requests.posted(1, false);
  const std::uint32_t second = requests.next();
  requests.posted(2, true);
  requests.posted(3, false);
  requests.posted(4, true);
  CHECK_FALSE(requests.has_room());
  CHECK(requests.signalled() == 2);
  CHECK(requests.ended(second) == 2);
  CHECK(requests.size() == 2);
  CHECK(flushed(requests) == std::vector<std::uint64_t>{4});
  CHECK(requests.size() == 0);
}

TEST_CASE("Requests of one id are told apart", "[verbs]") {
  PostedRequests requests(4);
  for (int lap = 0; lap < 5; ++lap) {
    const std::uint32_t first = requests.next();
    for (int i = 0; i < 4; ++i) requests.posted(7, i >= 2);
    CHECK(requests.ended(first + 2) == 7);  // with those before it
    CHECK(requests.size() == 1);
    CHECK(requests.ended(first) == std::nullopt);
    CHECK(requests.ended(first + 2) == std::nullopt);
    CHECK(requests.ended(first + 4) == std::nullopt);
    if (lap % 2 == 0) {
      CHECK(requests.ended(first + 3) == 7);
    } else {
      CHECK(flushed(requests) == std::vector<std::uint64_t>{7});
    }
    CHECK(requests.size() == 0);
  }
}

TEST_CASE("Every signalled request is reported once, whenever the queue pair goes", "[verbs]") {
  struct Posted {
    std::uint32_t mark;
    std::uint64_t id;
    bool signalled;
  };
  std::mt19937 random(3);
  for (int walk = 0; walk < 300; ++walk) {
    const std::uint32_t entries = 1 + random() % 9;
    PostedRequests requests(entries);
    std::deque<Posted> device;  // executes in order
    std::vector<std::uint64_t> signalled, reported;
    const auto report = [&](const Posted& each) {
      const auto id = requests.ended(each.mark);
      REQUIRE(id == each.id);
      if (each.signalled) reported.push_back(*id);
    };
    std::uint64_t posted = 0;
    for (int step = 0; step < 60; ++step) {
      if (random() % 2 == 0 && requests.has_room()) {
        const Posted next{requests.next(), ++posted % 4, random() % 3 == 0};
        requests.posted(next.id, next.signalled);
        device.push_back(next);
        if (next.signalled) signalled.push_back(next.id);
      } else if (!device.empty()) {
        if (device.front().signalled) report(device.front());
        device.pop_front();
      }
    }
    // Fails: some of the rest is flushed by the device, the others are dropped with it.
    for (std::size_t left = random() % (device.size() + 1); left > 0; --left) {
      report(device.front());
      device.pop_front();
    }
    for (const std::uint64_t each : flushed(requests)) reported.push_back(each);
    REQUIRE(reported == signalled);
    REQUIRE(requests.signalled() == 0);
  }
}
