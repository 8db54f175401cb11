// Who is there.
// SPDX-License-Identifier: BSD-3-Clause
#include "directory.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using overlap::fabric::soft::bench::Bench;

TEST_CASE("Numbers start at 1 and are never given twice", "[soft][directory]") {
  Bench bench;
  REQUIRE(bench.a.id == 1);
  REQUIRE(bench.directory.find_client(2) == &bench.b);
  REQUIRE(bench.directory.find_client(0) == nullptr);
  const std::uint32_t number = bench.ba.number;
  bench.directory.remove_pair(bench.ba);
  REQUIRE(bench.directory.find_pair(number) == nullptr);
  Pair& next = bench.directory.add_pair(bench.b, bench.completions_b, nullptr, nullptr);
  REQUIRE(next.number > number);
  REQUIRE(bench.directory.pairs_of(bench.b) == std::vector<Pair*>{&next});
}

TEST_CASE("A node is as fast as its fastest client, the device as quick as its quickest",
          "[soft][directory]") {
  TimerHeap timers;
  Wire wire(timers);
  Directory directory(wire);
  REQUIRE(directory.latency_min_ns() == never);
  Client& slow = directory.add_client(3, {1.0, 5000, 0}, nullptr);
  Client& fast = directory.add_client(3, {4.0, 7000, 0}, nullptr);
  REQUIRE(wire.node(3).bytes_per_ns == 4.0);
  REQUIRE(directory.latency_min_ns() == 5000);
  directory.remove_client(fast);
  REQUIRE(wire.node(3).bytes_per_ns == 1.0);
  directory.remove_client(slow);
  REQUIRE(directory.latency_min_ns() == never);
}
