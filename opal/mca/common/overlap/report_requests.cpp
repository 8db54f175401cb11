// Reports of counters that components have asked for.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <utility>

#include "opal/mca/common/overlap/counters.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap {
namespace {

std::vector<CounterReport>& requests() {
  static auto& all = never_destroyed<std::vector<CounterReport>>();
  return all;
}

}  // namespace

void request_report(const CounterReport& report) { requests().push_back(report); }

std::vector<CounterReport> take_report_requests() { return std::exchange(requests(), {}); }

std::string report_alone(std::string_view title) {
  const auto found = std::ranges::find(requests(), title, &CounterReport::title);
  if (found == requests().end()) return {};
  const CounterReport report = *found;
  requests().erase(found);
  if (!report.table) return {};
  std::vector<std::uint64_t> own(report.rows.size());
  std::ranges::transform(report.rows, own.begin(),
                         [](const CounterRow& row) { return *row.storage; });
  return render_counter_table(report.title + ", this process", report.rows, {own, own, own, 1});
}

}  // namespace overlap
