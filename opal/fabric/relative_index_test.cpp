// Indices of waits and enables.
// SPDX-License-Identifier: BSD-3-Clause
#include "management_queue.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;

TEST_CASE("Counts that are committed follow each other", "[fabric][index]") {
  WaitIndex index;
  CHECK(index.add(1, true) == 1);
  CHECK(index.add(2, true) == 3);
  CHECK(index.add(1, true) == 4);
  CHECK(index.base() == 4);
}

TEST_CASE("Without a commit counts have one base, and the largest is committed",
          "[fabric][index]") {
  WaitIndex index;
  CHECK(index.add(2, false) == 2);
  CHECK(index.add(5, false) == 5);
  CHECK(index.add(3, false) == 3);
  CHECK(index.base() == 0);
  CHECK(index.add(1, true) == 1);
  CHECK(index.base() == 5);
  CHECK(index.add(1, true) == 6);  // nothing is left of the earlier ones
}

TEST_CASE("Indices wrap at their width", "[fabric][index]") {
  WaitIndex waits;
  EnableIndex enables;
  for (int i = 0; i < 3; ++i) {
    CHECK(waits.add(0x7fffff, true) == ((0x7fffffU * static_cast<unsigned>(i + 1)) & 0xffffffU));
    CHECK(enables.add(0x7fff, true) == ((0x7fffU * static_cast<unsigned>(i + 1)) & 0xffffU));
  }
  CHECK(WaitIndex::mask == 0xffffff);
  CHECK(EnableIndex::mask == 0xffff);
}

TEST_CASE("Half of the range is ahead, the other half behind", "[fabric][index]") {
  CHECK(EnableIndex::ahead(5, 5) == 0);
  CHECK(EnableIndex::ahead(6, 5) == 1);
  CHECK(EnableIndex::ahead(5, 6) == 0);
  CHECK(EnableIndex::ahead(2, 0xffff) == 3);
  CHECK(EnableIndex::ahead(0xffff, 2) == 0);
  CHECK(EnableIndex::ahead(0x7fff, 0) == 0x7fff);
  CHECK(EnableIndex::ahead(0x8000, 0) == 0);
  CHECK(WaitIndex::ahead(0x7fffff, 0) == 0x7fffff);
  CHECK(WaitIndex::ahead(0x800000, 0) == 0);
}
