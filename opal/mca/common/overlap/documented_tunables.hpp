// For tests: a table of tunables is well formed, and the README and the man page say what it says.
#pragma once

#include <cstdio>
#include <cstdlib>
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

/// Prints the rows, to be pasted, when OVERLAP_PRINT_ROWS is set.
/// @param prefix  "<framework>_<component>_"
inline void check_documented(const char* prefix, std::span<const TunableRow> rows) {
  CHECK(table_fault(rows) == "");
  const std::string markdown = render_markdown(prefix, rows);
  const std::string man = render_man(prefix, rows);
  if (std::getenv("OVERLAP_PRINT_ROWS") != nullptr)
    std::printf("%s\n%s\n", markdown.c_str(), man.c_str());
  const char* source = std::getenv("OVERLAP_SOURCE");
  REQUIRE(source != nullptr);  // make check sets it
  CHECK(file_holds(std::string(source) + "/README.md", markdown));
  CHECK(file_holds(std::string(source) + "/docs/man/overlap.7", man));
}

}  // namespace overlap
