// Thresholds: the formula, its limits, and the sizes between.
// SPDX-License-Identifier: BSD-3-Clause
#include "cost_model.hpp"

#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("CostModel: n > R/(C-V), times the speculation (P3.3)") {
  CostModel model;
  CHECK(model.threshold(4096) == CostModel::never);  // nothing is known
  model.set_speculation(100);
  model.set(4096, {59000, 1100, 100});
  CHECK(model.threshold(4096) == 59);
  model.set_speculation(25);
  CHECK(model.threshold(4096) == 15);  // 14.75 rounded up
  model.set_speculation(50);
  CHECK(model.threshold(4096) == 30);
  model.set_speculation(0);
  CHECK(model.threshold(4096) == 1);
}

TEST_CASE(
    "CostModel: never below 128 bytes, nor where the copy is no dearer than the look-up (P3.3)") {
  CostModel model;
  model.set(64, {1, 1000, 1});
  model.set(128, {1000, 50, 20});
  model.set(256, {1000, 20, 20});
  model.set(512, {1000, 10, 20});
  model.set(1024, {UINT32_MAX, 1, 0});
  for (std::uint32_t bytes = 0; bytes < 128; ++bytes)
    CHECK(model.threshold(bytes) == CostModel::never);
  CHECK(model.threshold(128) == 9);
  CHECK(model.threshold(256) == CostModel::never);
  CHECK(model.threshold(512) == CostModel::never);
  CHECK(model.threshold(1024) == 1073741824U);
  model.set_speculation(UINT32_MAX);
  CHECK(model.threshold(1024) == CostModel::never - 1);
}

TEST_CASE(
    "CostModel: sizes between have the threshold of the smaller one, larger ones that of the "
    "largest (P3.3)") {
  CostModel model;
  model.set_speculation(100);
  model.set(8192, {100, 2, 1});
  model.set(1024, {300, 2, 1});
  for (std::uint32_t bytes = 0; bytes < 20000; ++bytes) {
    const std::uint32_t expected = bytes < 1024 ? CostModel::never : bytes < 8192 ? 300 : 100;
    if (model.threshold(bytes) != expected)
      FAIL("threshold of " << bytes << " is " << model.threshold(bytes));
  }
  CHECK(model.threshold(UINT32_MAX) == 100);
}

TEST_CASE("CostModel: five numbers are five costs, anything else is none") {
  CHECK(parse_costs("66000,140,8,26,62") == MeasuredCosts{66000, 140, 8, 26, 62});
  CHECK(parse_costs("0,0,0,0,1000000000") == MeasuredCosts{0, 0, 0, 0, cost_max_ns});
  for (const char* text : {"", "1", "1,2,3,4", "1,2,3,4,", "1,2,3,4,5,", "1,2,3,4,5,6",
                           "1,2,3,4,5 ", " 1,2,3,4,5", "1,,3,4,5", "-1,2,3,4,5", "1;2;3;4;5",
                           "1,2,3,4,1000000001", "1,2,3,4,4294967296", "a,b,c,d,e"}) {
    CAPTURE(text);
    CHECK(parse_costs(text) == std::nullopt);
  }
}

TEST_CASE("CostModel: the cost of a large buffer does not wrap") {
  const MeasuredCosts costs{cost_max_ns, cost_max_ns, cost_max_ns, cost_max_ns, 1};
  CHECK(costs_at(costs, UINT32_MAX) == Costs{UINT32_MAX, UINT32_MAX, 1});
  CHECK(costs_at(costs, 1) == Costs{cost_max_ns, cost_max_ns + cost_max_ns / 1024, 1});
}
