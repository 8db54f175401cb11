// For tests: a table of tunables is well formed, and docs/parameters.md and the component's man
// page hold it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <string>

#include "test/support/catch.hpp"

#include "opal/mca/common/overlap/tunables.hpp"

namespace overlap {

inline bool file_holds(const std::string& path, const std::string& text) {
  std::ifstream file(path);
  const std::string all{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return all.find(text) != std::string::npos;
}

/// `make -C docs update` writes both documents.
/// @param prefix  "<framework>_<component>_"
inline void check_documented(const char* prefix, std::span<const TunableRow> rows) {
  CHECK(table_fault(rows) == "");
  const std::string markdown = render_markdown(prefix, rows);
  const std::string man = render_man(prefix, rows);
  const char* source = std::getenv("OVERLAP_SOURCE");
  REQUIRE(source != nullptr);  // make check sets it
  const std::string documents = std::string(source) + "/docs/";
  const std::string component(prefix, std::strlen(prefix) - 1);
  CHECK(file_holds(documents + "parameters.md", markdown));
  CHECK(file_holds(documents + "man/" + component + ".7", man));
}

}  // namespace overlap
