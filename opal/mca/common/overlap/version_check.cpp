// Version and size comparison; no Open MPI.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/version_check.hpp"

#include <algorithm>

namespace overlap {

namespace {

bool matches(const SizeRow& row) { return row.compiled_bytes == row.running_bytes; }

}  // namespace

bool sizes_match(std::span<const SizeRow> rows) noexcept {
  return std::ranges::all_of(rows, matches);
}

std::string size_fault(std::span<const SizeRow> rows) {
  std::string differing;
  for (const SizeRow& row : rows)
    if (!matches(row))
      differing += (differing.empty() ? "" : ", ") + std::string(row.type_name) + " " +
                   std::to_string(row.compiled_bytes) + " against " +
                   std::to_string(row.running_bytes) + " bytes";
  if (differing.empty()) return {};
  return "Structures of the running Open MPI have other sizes than when this component was "
         "built: " +
         differing + ".";
}

std::string version_fault(std::string_view configured, std::string_view running) {
  if (configured == running) return {};
  return "This component was built for Open MPI " + std::string(configured) + ", but Open MPI " +
         (running.empty() ? std::string("of an unknown version") : std::string(running)) +
         " is running.";
}

}  // namespace overlap
