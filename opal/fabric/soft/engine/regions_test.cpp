// Registered memory by key.
// SPDX-License-Identifier: BSD-3-Clause
#include "regions.hpp"

#include "opal/fabric/fabric.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;

TEST_CASE("A key opens its region only: client, bounds, rights, and not after removal",
          "[soft][regions]") {
  Regions regions;
  const std::uint32_t key = regions.add({5, 1000, 100, access::remote_read, nullptr});
  REQUIRE(key != 0);
  REQUIRE(regions.find(key, 5, 1000, 100, access::remote_read) != nullptr);
  REQUIRE(regions.find(key, 5, 1099, 1, 0) != nullptr);
  REQUIRE(regions.find(key, 6, 1000, 100, 0) == nullptr);
  REQUIRE(regions.find(key, 0, 1000, 100, 0) == nullptr);
  REQUIRE(regions.find(key, 5, 999, 1, 0) == nullptr);
  REQUIRE(regions.find(key, 5, 1000, 101, 0) == nullptr);
  REQUIRE(regions.find(key, 5, 1099, 2, 0) == nullptr);
  REQUIRE(regions.find(key, 5, 1001, ~std::uint64_t{0}, 0) == nullptr);  // wraps
  REQUIRE(regions.find(key, 5, 1000, 8, access::remote_write) == nullptr);
  REQUIRE(regions.find(0, 5, 1000, 8, 0) == nullptr);
  REQUIRE(regions.keys(5) == std::vector<std::uint32_t>{key});
  regions.remove(key);
  REQUIRE(regions.find(key, 5, 1000, 8, 0) == nullptr);
  for (int i = 0; i < 200; ++i) {
    const std::uint32_t next = regions.add({5, 1000, 100, access::any, nullptr});
    REQUIRE(next != key);  // the place is used again, under another name
    regions.remove(next);
  }
}
