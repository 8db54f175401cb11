// Memory of unexpected messages is used again, and bounded.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <vector>

#include "operations.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("Arrived pool: a message of the same size takes the memory of the last one") {
  ArrivedPool pool;
  Arrived* first = pool.make(100);
  std::memset(first->payload(), 1, 100);
  Arrived::destroy(first);
  CHECK(pool.kept_bytes() == 128);
  Arrived* small = pool.make(64);
  CHECK(small != first);
  Arrived* second = pool.make(128);
  CHECK(second == first);
  CHECK(second->payload_bytes == 128);
  CHECK(second->tag == 0);
  std::memset(second->payload(), 2, 128);
  CHECK(pool.kept_bytes() == 0);
  Arrived::destroy(second);
  Arrived::destroy(small);
  CHECK(pool.kept_bytes() == 192);
}

TEST_CASE("Arrived pool: what it keeps is bounded; large messages are not kept") {
  ArrivedPool pool;
  std::vector<Arrived*> all;
  for (int i = 0; i < 100; ++i) all.push_back(pool.make(65536));
  for (Arrived* each : all) Arrived::destroy(each);
  CHECK(pool.kept_bytes() == std::uint64_t{1} << 22U);
  Arrived* large = pool.make(70'000);
  std::memset(large->payload(), 3, 70'000);
  Arrived::destroy(large);
  Arrived* empty = pool.make(0);
  Arrived::destroy(empty);
  CHECK(pool.kept_bytes() == std::uint64_t{1} << 22U);
}
