// Handles: what is stale or invented names nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include "handle_table.hpp"

#include <map>
#include <random>

#include "test/support/catch.hpp"

using overlap::speculative::Handle;
using overlap::speculative::HandleTable;

TEST_CASE("Handle table: a handle names its object until it is removed, never another one") {
  HandleTable<int> table;
  int a = 1;
  int b = 2;
  const Handle first = table.add(a);
  CHECK(first != 0);
  CHECK(table.find(first) == &a);
  table.remove(first);
  CHECK(table.find(first) == nullptr);
  const Handle second = table.add(b);  // the same slot
  CHECK(second != first);
  CHECK(static_cast<std::uint32_t>(second) == static_cast<std::uint32_t>(first));
  CHECK(table.find(first) == nullptr);
  CHECK(table.find(second) == &b);
}

TEST_CASE("Handle table: invented handles find nothing") {
  HandleTable<int> table;
  CHECK(table.find(0) == nullptr);
  CHECK(table.find(~Handle{0}) == nullptr);
  int a = 1;
  const Handle real = table.add(a);
  CHECK(table.find(0) == nullptr);
  CHECK(table.find(real + 1) == nullptr);
  CHECK(table.find(real + (Handle{1} << 32U)) == nullptr);
  CHECK(table.find(real & 0xffffffffU) == nullptr);  // generation 0 is never given out
  table.remove(real);
  CHECK(table.find(static_cast<std::uint32_t>(real)) == nullptr);
}

TEST_CASE("Handle table: a random life against a map") {
  std::mt19937 random(7);
  HandleTable<int> table;
  std::vector<int> objects(64);
  std::map<Handle, int*> live;
  std::vector<Handle> dead;
  for (int i = 0; i < 20000; ++i) {
    if (live.size() < objects.size() && (live.empty() || random() % 2 == 0)) {
      int* object = &objects[random() % objects.size()];
      const Handle handle = table.add(*object);
      REQUIRE(live.emplace(handle, object).second);
    } else {
      const auto victim =
          std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      table.remove(victim->first);
      dead.push_back(victim->first);
      live.erase(victim);
    }
    REQUIRE(table.size() == live.size());
    if (!dead.empty()) REQUIRE(table.find(dead[random() % dead.size()]) == nullptr);
    if (!live.empty()) {
      const auto some =
          std::next(live.begin(), static_cast<std::ptrdiff_t>(random() % live.size()));
      REQUIRE(table.find(some->first) == some->second);
    }
  }
}
