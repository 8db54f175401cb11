// The end-of-job table of counters.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/contains.hpp"

#include <array>

namespace {

using namespace overlap;

std::array<std::uint64_t, 3> values{};
const std::array<CounterRow, 3> rows{{
    {"rtr_sent", "Offers sent.", CounterClass::counter, &values[0]},
    {"rtr_stale", "Offers dropped because they were too old.", CounterClass::counter, &values[1]},
    {"posted_max", "Longest queue of posted receives.", CounterClass::high_watermark, &values[2]},
}};

using Column = std::array<std::uint64_t, 3>;

std::string render(const Column& min, const Column& max, const Column& sum, std::uint32_t ranks) {
  return render_counter_table("speculative", rows, {min, max, sum, ranks});
}

}  // namespace

TEST_CASE("the table shows every row, zeros too", "[counters]") {
  CHECK(render({12, 0, 3}, {15, 0, 9}, {54, 0, 24}, 4) ==
        "speculative (4 ranks)           min          mean           max           sum\n"
        "rtr_sent                         12          13.5            15            54\n"
        "rtr_stale                         0           0.0             0             0\n"
        "posted_max                        3           6.0             9             -\n");
}

TEST_CASE("a row that one rank counted is shown", "[counters]") {
  CHECK_THAT(render({0, 0, 0}, {0, 1, 0}, {0, 1, 0}, 2), contains("rtr_stale"));
}

TEST_CASE("the number of ranks is in the head", "[counters]") {
  CHECK_THAT(render({}, {}, {}, 1), contains("(1 rank)"));
  CHECK_THAT(render({}, {}, {}, 0), contains("(0 ranks)"));
}

TEST_CASE("sums are found by name", "[counters]") {
  const Column sum{54, 7, 24};
  const CounterSummary summary{sum, sum, sum, 2};
  CHECK(sum_of(rows, summary, "rtr_stale") == 7);
  CHECK(sum_of(rows, summary, "no_such") == 0);
}

TEST_CASE("large numbers keep a space between columns", "[counters]") {
  const std::uint64_t large = 18446744073709551615ULL;
  const std::string table = render({large, 0, 0}, {large, 0, 0}, {large, 0, 0}, 1);
  CHECK_THAT(table, contains(" 18446744073709551615 18446744073709551616.0 18446744073709551615 "
                             "18446744073709551615\n"));
}

TEST_CASE("columns that are too short cut the table", "[counters]") {
  const std::array<std::uint64_t, 1> one{1};
  const std::string table = render_counter_table("speculative", rows, {one, one, one, 1});
  CHECK_THAT(table, contains("rtr_sent") && !contains("posted_max"));
}

TEST_CASE("a report is printed by whoever takes the request, else by its component alone",
          "[counters]") {
  std::uint64_t sent = 7;
  const CounterRow rows[] = {{"sent", "Messages sent.", CounterClass::counter, &sent}};
  CHECK(overlap::report_alone("btl/ring").empty());
  overlap::request_report({"btl/ring", rows});
  overlap::request_report({.title = "other", .rows = rows, .table = false});
  CHECK(overlap::report_alone("btl/ring").find("btl/ring, this process") != std::string::npos);
  CHECK(overlap::report_alone("btl/ring").empty());
  CHECK(overlap::report_alone("other").empty());  // no table was asked for
  overlap::request_report({"btl/ring", rows});
  CHECK(overlap::take_report_requests().size() == 1);
  CHECK(overlap::take_report_requests().empty());
  CHECK(overlap::report_alone("btl/ring").empty());
}
