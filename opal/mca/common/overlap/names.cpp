// Lists of names, and the nearest known name by edit distance.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/names.hpp"

#include <algorithm>
#include <vector>

namespace overlap {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) *
                                width);  // cost[i][j]: first i letters of a into first j of b
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] != b[j - 1]);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
    }
  }
  return at(a.size(), b.size());
}

std::optional<std::string_view> nearest_name(std::string_view given,
                                             std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  std::size_t best_errors = 0;
  for (const std::string_view candidate : candidates) {
    const std::size_t errors = edit_distance(given, candidate);
    if (errors * 3 <= std::max(given.size(), candidate.size()) && (!best || errors < best_errors)) {
      best = candidate;
      best_errors = errors;
    }
  }
  return best;
}

bool is_named(const char* list, std::string_view component) noexcept {
  if (list == nullptr || *list == '^') return false;
  std::string_view rest(list);
  for (;;) {
    const std::size_t comma = rest.find(',');
    if (rest.substr(0, comma) == component) return true;
    if (comma == std::string_view::npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

}  // namespace overlap
