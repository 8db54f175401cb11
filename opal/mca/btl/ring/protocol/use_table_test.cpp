// Counting uses of buffers: when one becomes frequent, when the table stops, and how long its
// chains are.
// SPDX-License-Identifier: BSD-3-Clause
#include "use_table.hpp"

#include <map>
#include <random>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

/// Threshold 3 for every size from 128 bytes on.
CostModel three() {
  CostModel model;
  model.set_speculation(100);
  model.set(128, {30, 20, 10});
  return model;
}
const void* at(std::uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

TEST_CASE("UseTable: a buffer is frequent after its threshold of uses (P3.1, P3.2)") {
  const CostModel model = three();
  UseTable table(10, 20, model);
  for (int use = 1; use <= 3; ++use) {
    CHECK_FALSE(table.is_frequent(at(4096), 128));
    CHECK_FALSE(table.count(at(4096), 128));
  }
  CHECK(table.count(at(4096), 128));
  CHECK(table.is_frequent(at(4096), 128));
  CHECK(table.buffers() == 1);
  CHECK(table.frequent() == 1);
  CHECK_FALSE(table.count(at(4096), 127));  // too small to pay, frequent or not
  CHECK_FALSE(table.is_frequent(at(4096), 127));
  CHECK_FALSE(table.count(at(8192), 64));
  CHECK(table.buffers() == 1);  // what never pays is not looked up
  CHECK_FALSE(table.is_frequent(at(8192), 128));
  CHECK(table.buffers() == 1);
}

TEST_CASE("UseTable: a buffer that cannot be registered is copied for ever (P3.2)") {
  const CostModel model = three();
  UseTable table(10, 20, model);
  for (int use = 0; use < 4; ++use) static_cast<void>(table.count(at(64), 128));
  REQUIRE(table.frequent() == 1);
  table.forget(at(64));
  table.forget(at(128));  // unknown
  table.forget(at(64));
  CHECK(table.frequent() == 0);
  for (int use = 0; use < 100; ++use) CHECK_FALSE(table.count(at(64), 128));
  CHECK(table.buffers() == 1);
}

TEST_CASE("UseTable: seeded walk against a map (P3.1)") {
  const CostModel model = three();
  UseTable table(6, 0, model);  // 64 buckets, long chains, never stops
  std::map<std::uint64_t, int> uses;
  std::mt19937_64 random(3);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t address = random() % 5000 * 64;
    const bool frequent = uses[address] >= 3;
    REQUIRE(table.is_frequent(at(address), 256) == (uses[address] > 3));
    REQUIRE(table.count(at(address), 256) == frequent);
    ++uses[address];
  }
  CHECK(table.buffers() == uses.size());
  CHECK(table.chained() >= uses.size() - 64);
}

TEST_CASE(
    "UseTable: it stops when few buffers are frequent and chains have formed, not before (P3.4)") {
  const CostModel model = three();
  SECTION("no chains: however few are frequent, it grows") {
    UseTable table(20, 20, model);
    std::uint64_t address = 0;
    while (true) {
      const std::uint32_t chained = table.chained();
      if (chained != 0) break;
      REQUIRE_FALSE(table.stopped());
      const std::uint32_t before = table.buffers();
      static_cast<void>(table.count(at(address += 4096), 128));
      REQUIRE(table.buffers() == before + 1);
    }
    CHECK(table.frequent() == 0);
    CHECK(table.buffers() > 1000);
    CHECK(table.stopped());  // with the first chain
    const std::uint32_t before = table.buffers();
    CHECK_FALSE(table.count(at(address += 4096), 128));
    CHECK(table.buffers() == before);
  }
  SECTION(
      "chains, exactly 20 % frequent: it grows; one buffer more: it stops; one more frequent: it "
      "grows again") {
    UseTable table(1, 20, model);  // 2 buckets: the third buffer makes a chain
    for (std::uint64_t i = 1; i <= 5; ++i) {
      static_cast<void>(table.count(at(i * 64), 128));
      if (i == 1) {  // the first of five: 20 %
        for (int use = 0; use < 3; ++use) static_cast<void>(table.count(at(64), 128));
      }
    }
    REQUIRE(table.frequent() == 1);
    REQUIRE(table.buffers() == 5);
    REQUIRE(table.chained() >= 3);
    CHECK_FALSE(table.stopped());
    static_cast<void>(table.count(at(6 * 64), 128));
    CHECK(table.buffers() == 6);
    CHECK(table.stopped());
    static_cast<void>(table.count(at(7 * 64), 128));
    CHECK(table.buffers() == 6);
    for (int use = 0; use < 3; ++use)
      static_cast<void>(table.count(at(2 * 64), 128));  // known ones are still counted
    CHECK(table.frequent() == 2);
    CHECK_FALSE(table.stopped());
    static_cast<void>(table.count(at(7 * 64), 128));
    CHECK(table.buffers() == 7);
  }
}

TEST_CASE("UseTable: usual addresses spread over the buckets (P3.1)") {
  const CostModel model = three();
  for (const std::uint64_t stride :
       {8U, 16U, 64U, 1600U, 2048U, 4096U, 8192U, 65536U, 1048576U, 2097152U}) {
    CAPTURE(stride);
    UseTable table(16, 0, model);
    for (std::uint64_t i = 0; i < 32768; ++i)
      static_cast<void>(table.count(at(0x7f0000000000 + i * stride), 128));
    CHECK(table.chained() < 32768 * 3 / 10);  // thrown at random 21 % would share a bucket
  }
}
