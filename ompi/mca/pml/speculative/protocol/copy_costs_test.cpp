// Classes of sizes, averages, and which copies are timed.
// SPDX-License-Identifier: BSD-3-Clause
#include "copy_costs.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("SizeClasses: powers of two above the smallest, ten of them, and the rest") {
  constexpr SizeClasses classes(13);
  CHECK(classes.of(1) == 0);
  CHECK(classes.of(8191) == 0);
  CHECK(classes.of(8192) == 1);
  CHECK(classes.of(16383) == 1);
  CHECK(classes.of(16384) == 2);
  CHECK(classes.of((1U << 23) - 1) == 10);
  CHECK(classes.of(1U << 23) == 11);
  CHECK(classes.of(std::uint64_t{1} << 40) == 11);
}

TEST_CASE("ReceiveCopies: one copy in four of each class is timed, whatever the others do") {
  ReceiveCopies copies(13);
  const int sizes = GENERATE(1, 2, 3, 4, 5);
  std::array<int, 5> timed{};
  for (int i = 0; i < 100 * sizes; ++i) {
    const auto size = static_cast<std::size_t>(i % sizes);
    timed[size] += copies.times_next(std::uint64_t{4096} << size) ? 1 : 0;
  }
  for (std::size_t size = 0; size < static_cast<std::size_t>(sizes); ++size)
    CHECK(timed[size] == 25);
}

TEST_CASE("ReceiveCopies: what copies take is known of the sizes that have come") {
  ReceiveCopies copies(13);
  CHECK(copies.ns(16384) == 0);
  copies.took(16384, 1600);
  CHECK(copies.ns(16384) == 1600);
  CHECK(copies.ns(24576) == 2400);
  CHECK(copies.ns(8192) == 0);
  copies.took(16384, 800);
  CHECK(copies.ns(16384) == 1200);
}
