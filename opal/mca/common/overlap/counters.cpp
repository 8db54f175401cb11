// The end-of-job table of counters; no Open MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/counters.hpp"

#include <algorithm>
#include <cstdio>

namespace overlap {

namespace {

constexpr int number_width = 14;

void append_cell(std::string& text, const std::string& cell) {
  text.append(static_cast<std::size_t>(std::max(1, number_width - static_cast<int>(cell.size()))),
              ' ');
  text += cell;
}

std::string mean_text(std::uint64_t sum, std::uint32_t ranks) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(sum) / std::max(1U, ranks));
  return text;
}

}  // namespace

std::string render_counter_table(std::string_view title, std::span<const CounterRow> rows,
                                 const CounterSummary& summary) {
  const std::size_t count =
      std::min({rows.size(), summary.min.size(), summary.max.size(), summary.sum.size()});
  const std::string head = std::string(title) + " (" + std::to_string(summary.ranks) +
                           (summary.ranks == 1 ? " rank)" : " ranks)");
  std::size_t name_width = head.size();
  for (const CounterRow& row : rows)
    name_width = std::max(name_width, std::string_view(row.name).size());

  const auto padded = [&](std::string text) {
    text.resize(name_width, ' ');
    return text;
  };
  std::string table = padded(head);
  for (const char* column : {"min", "mean", "max", "sum"}) append_cell(table, column);
  table += '\n';
  for (std::size_t i = 0; i < count; ++i) {
    table += padded(rows[i].name);
    append_cell(table, std::to_string(summary.min[i]));
    append_cell(table, mean_text(summary.sum[i], summary.ranks));
    append_cell(table, std::to_string(summary.max[i]));
    append_cell(table, rows[i].cls == CounterClass::counter ? std::to_string(summary.sum[i]) : "-");
    table += '\n';
  }
  return table;
}

std::uint64_t sum_of(std::span<const CounterRow> rows, const CounterSummary& summary,
                     std::string_view name) noexcept {
  for (std::size_t i = 0; i < std::min(rows.size(), summary.sum.size()); ++i)
    if (name == rows[i].name) return summary.sum[i];
  return 0;
}

}  // namespace overlap
