// Which of two ways to copy messages take, and when the slower one is tried again.
// SPDX-License-Identifier: BSD-3-Clause
#include "copy_ways.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

constexpr std::uint64_t bytes = 100000;

/// What a message takes by each way, in ns.
struct Machine {
  std::uint64_t read_ns;
  std::uint64_t fragments_ns;

  [[nodiscard]] std::uint64_t of(CopyWay way) const {
    return way == CopyWay::read ? read_ns : fragments_ns;
  }
};

/// Send messages one after the other. @returns  the way of each
std::vector<CopyWay> send(CopyWays& ways, int messages, const Machine& machine,
                          std::uint64_t size_bytes = bytes) {
  std::vector<CopyWay> chosen;
  for (int i = 0; i < messages; ++i) {
    chosen.push_back(ways.choose(size_bytes));
    ways.took(chosen.back(), size_bytes, machine.of(chosen.back()));
  }
  return chosen;
}

int count(const std::vector<CopyWay>& chosen, CopyWay way) {
  return static_cast<int>(std::count(chosen.begin(), chosen.end(), way));
}

}  // namespace

TEST_CASE("Copy ways: the first messages go both ways, then all the faster one") {
  const bool read_is_faster = GENERATE(true, false);
  const Machine machine = read_is_faster ? Machine{6000, 9000} : Machine{9000, 6000};
  CopyWays ways;
  const auto first = send(ways, 6, machine);
  CHECK(count(first, CopyWay::read) == 3);
  CHECK(count(first, CopyWay::fragments) == 3);
  const CopyWay faster = read_is_faster ? CopyWay::read : CopyWay::fragments;
  CHECK(count(send(ways, 15, machine), faster) == 15);
  CHECK(count(send(ways, 1, machine), faster) == 0);  // a retry
}

TEST_CASE("Copy ways: the slower one is tried less often each time") {
  CopyWays ways;
  const Machine machine{9000, 3000};
  send(ways, 6, machine);
  std::vector<int> between;
  for (int since = 1; between.size() < 10; ++since) {
    if (count(send(ways, 1, machine), CopyWay::read) == 0) continue;
    between.push_back(since);
    since = 0;
  }
  CHECK(between == std::vector<int>{16, 32, 64, 128, 256, 256, 256, 256, 256, 256});
}

TEST_CASE("Copy ways: one that is far slower costs a few percent") {
  const std::uint64_t times = GENERATE(40, 700);
  const Machine machine{9000, 9000 * times};
  CopyWays ways;
  const auto first = send(ways, 250, machine);
  CHECK(count(first, CopyWay::fragments) == 1);
  send(ways, 100000, machine);
  const int later = count(send(ways, 200000, machine), CopyWay::fragments);
  CHECK(later > 0);
  CHECK(static_cast<std::uint64_t>(later) * times < 200000 / 20);
}

TEST_CASE("Copy ways: a first message that was held up for long misleads for a while only") {
  CopyWays ways;
  ways.took(ways.choose(bytes), bytes, 100'000'000);
  send(ways, 600, {3000, 9000});
  CHECK(count(send(ways, 100, {3000, 9000}), CopyWay::read) >= 99);
}

TEST_CASE("Copy ways: each size has its own") {
  CopyWays ways;
  for (int i = 0; i < 10; ++i) {
    send(ways, 1, {5000, 3000}, 65536);
    send(ways, 1, {50000, 70000}, 1 << 20);
    send(ways, 1, {500, 300}, 40000);
    send(ways, 1, {1 << 20, 2 << 20}, std::uint64_t{1} << 40U);
    send(ways, 1, {9000000, 8000000}, 1 << 23);
  }
  CHECK(ways.choose(1 << 23) == CopyWay::fragments);
  CHECK(ways.choose(65536) == CopyWay::fragments);
  CHECK(ways.choose((1 << 17) - 1) == CopyWay::fragments);
  CHECK(ways.choose(1 << 20) == CopyWay::read);
  CHECK(ways.choose(33000) == CopyWay::fragments);
  CHECK(ways.choose(std::uint64_t{1} << 41U) == CopyWay::read);
}

TEST_CASE("Copy ways: a message that was held up changes nothing") {
  CopyWays ways;
  const Machine machine{9000, 3000};
  send(ways, 2, {1000000, 1000000});  // the first ones, too
  send(ways, 10, machine);
  const CopyWay way = ways.choose(bytes);
  CHECK(way == CopyWay::fragments);
  ways.took(way, bytes, 4000000);
  CHECK(count(send(ways, 10, machine), CopyWay::fragments) == 10);
}

TEST_CASE("Copy ways: a machine that changes is noticed") {
  CopyWays ways;
  send(ways, 300, {9000, 3000});
  SECTION("the faster way becomes slow") {
    send(ways, 30, {9000, 30000});
    CHECK(count(send(ways, 50, {9000, 30000}), CopyWay::read) >= 49);
  }
  SECTION("the slower way becomes fast") {
    send(ways, 300, {1000, 3000});
    CHECK(count(send(ways, 50, {1000, 3000}), CopyWay::read) >= 49);
  }
}

TEST_CASE("Copy ways: memory that is touched first misleads for a while only") {
  CopyWays ways;
  send(ways, 40, {80000, 30000});
  for (int i = 0; i < 30; ++i) ways.took(CopyWay::fragments, bytes, 200000);
  CHECK(count(send(ways, 200, {80000, 30000}), CopyWay::fragments) >= 180);
}

TEST_CASE("Copy ways: several messages under way at once") {
  CopyWays ways;
  std::vector<CopyWay> under_way;
  for (int i = 0; i < 40; ++i) under_way.push_back(ways.choose(bytes));
  CHECK(count(under_way, CopyWay::read) >= 3);
  CHECK(count(under_way, CopyWay::fragments) >= 3);
  for (const CopyWay way : under_way) ways.took(way, bytes, way == CopyWay::read ? 1000 : 4000);
  CHECK(count(send(ways, 30, {1000, 4000}), CopyWay::read) >= 29);
}

TEST_CASE("Copy ways: a faster way that was slow for a moment is tried again soon") {
  CopyWays ways({.change_groups = 2});
  send(ways, 2000, {1000, 4000});
  for (int i = 0; i < 30; ++i) ways.took(CopyWay::read, bytes, 9000);
  CHECK(count(send(ways, 20, {1000, 4000}), CopyWay::read) >= 10);
  CHECK(count(send(ways, 2000, {1000, 4000}), CopyWay::read) >= 1950);
}

TEST_CASE("Copy ways: with noise, few messages go the slower way") {
  std::mt19937 random(7);
  std::exponential_distribution<double> noise(1.0);
  std::bernoulli_distribution preempted(0.01);
  CopyWays ways;
  int slower = 0;
  for (int i = 0; i < 10000; ++i) {
    const CopyWay way = ways.choose(bytes);
    const double ns = (way == CopyWay::read ? 9000 : 6000) * (1 + 0.2 * noise(random)) +
                      (preempted(random) ? 4e6 : 0);
    slower += way == CopyWay::read ? 1 : 0;
    ways.took(way, bytes, static_cast<std::uint64_t>(ns));
  }
  CHECK(slower <= 500);
}
