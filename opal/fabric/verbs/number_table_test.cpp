// Tests: the table of queue pair numbers, against std::map.
// SPDX-License-Identifier: BSD-3-Clause
#include "number_table.hpp"

#include <map>
#include <random>

#include "test/support/catch.hpp"

using overlap::fabric::verbs::NumberTable;

TEST_CASE("a number table agrees with a map", "[verbs]") {
  const auto seed = GENERATE(range(1U, 21U));
  std::mt19937 random(seed);
  NumberTable<int> table;
  std::map<std::uint32_t, int*> model;
  std::vector<int> values(64);
  // Numbers that collide: few low bits.
  const auto number = [&] { return 1 + (random() % 6) + 16 * (random() % 40); };
  for (int turn = 0; turn < 2000; ++turn) {
    const std::uint32_t key = static_cast<std::uint32_t>(number());
    if (random() % 2 == 0 && !model.contains(key)) {
      int* value = &values[random() % values.size()];
      table.insert(key, value);
      model[key] = value;
    } else {
      table.erase(key);
      model.erase(key);
    }
    const std::uint32_t other = static_cast<std::uint32_t>(number());
    const auto found = model.find(other);
    REQUIRE(table.find(other) == (found == model.end() ? nullptr : found->second));
    REQUIRE(table.size() == model.size());
  }
  for (const auto& [key, value] : model) REQUIRE(table.find(key) == value);
}
