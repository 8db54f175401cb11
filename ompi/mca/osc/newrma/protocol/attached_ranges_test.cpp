// Memory attached to a dynamic window, in the owner's list and in the copy that others read.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/attached_ranges.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <optional>
#include <thread>

namespace {

using namespace overlap::newrma;
#if !defined(__SANITIZE_THREAD__)
using overlap::tso::Machine;
using overlap::tso::Outcome;

/// A model's atomic that begins with zero.
template <class T>
struct Zero : overlap::tso::Atomic<T> {
  Zero() : overlap::tso::Atomic<T>(T{0}) {}
};
#endif

constexpr AttachedRange first[] = {{10, 20}};
constexpr AttachedRange second[] = {{30, 40}};

}  // namespace

TEST_CASE("attached ranges: what is attached, and for how long") {
  AttachedRanges ranges;
  CHECK_FALSE(ranges.covers(100, 0));
  REQUIRE(ranges.attach(100, 50));
  REQUIRE(ranges.attach(0, 10));
  CHECK_FALSE(ranges.attach(149, 10));
  CHECK_FALSE(ranges.attach(90, 11));
  CHECK_FALSE(ranges.attach(100, 50));
  REQUIRE(ranges.attach(120, 0));  // nothing overlaps nothing
  CHECK(ranges.covers(100, 50));
  CHECK(ranges.covers(149, 1));
  CHECK_FALSE(ranges.covers(149, 2));
  CHECK_FALSE(ranges.covers(99, 1));
  CHECK_FALSE(ranges.covers(10, 1));
  REQUIRE(ranges.attach(150, 50));
  CHECK(ranges.covers(100, 100));  // over both
  CHECK_FALSE(ranges.covers(100, UINT64_MAX));
  CHECK(ranges.all().size() == 4);
  CHECK_FALSE(ranges.detach(149));
  REQUIRE(ranges.detach(100));
  CHECK_FALSE(ranges.covers(100, 50));
  CHECK(ranges.covers(150, 50));
  CHECK(ranges.covers(120, 0));
}

TEST_CASE("attached ranges: others know what fits into the copy") {
  PublishedRanges<std::atomic, 3> published;
  AttachedRanges ranges;
  CHECK(published.knows(0, 0) == Attached::no);
  for (std::uint64_t begin : {300, 100, 200}) {
    REQUIRE(ranges.attach(begin, 100));
    published.publish(ranges.all());
    CHECK(published.knows(begin, 100) == Attached::yes);
  }
  CHECK(published.knows(100, 300) == Attached::yes);
  CHECK(published.knows(99, 2) == Attached::no);
  REQUIRE(ranges.attach(500, 100));
  published.publish(ranges.all());
  for (std::uint64_t begin : {100, 200, 300, 500, 700})
    CHECK(published.knows(begin, 1) == Attached::unknown);
  REQUIRE(ranges.detach(200));
  published.publish(ranges.all());
  for (std::uint64_t begin : {100, 300, 500}) CHECK(published.knows(begin, 100) == Attached::yes);
  CHECK(published.knows(200, 1) == Attached::no);
}

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread
TEST_CASE("attached ranges: never parts of two lists, in every interleaving") {
  std::optional<PublishedRanges<Zero, 2, 1>> published;
  bool is_right = true, knew = false;
  Machine machine(
      [&] {
        published.emplace();
        is_right = true;
      },
      {[&] {
         published->publish(first);
         published->publish(second);
       },
       [&] {
         // [10, 40) has never been attached.
         is_right = published->knows(20, 5) != Attached::yes;
         knew = published->knows(30, 10) == Attached::yes || knew;
       }},
      [&] { return is_right; });
  CHECK(machine.explore().outcome == Outcome::holds);
  CHECK(knew);
}
#endif

TEST_CASE("attached ranges: read while others come and go") {
  PublishedRanges<> published;
  std::atomic<bool> done{false};
  std::thread owner([&] {
    for (int i = 0; i < 20000; ++i) published.publish(i % 2 == 0 ? first : second);
    done.store(true, std::memory_order_release);
  });
  bool torn = false;
  while (!done.load(std::memory_order_acquire))
    torn = torn || published.knows(20, 5) == Attached::yes;
  owner.join();
  CHECK_FALSE(torn);
  CHECK(published.knows(30, 10) == Attached::yes);
}
