// The table of tunables is well formed, and the README and the man page say what it says.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "test/support/catch.hpp"

#include "opal/mca/common/overlap/tunables.hpp"

namespace overlap::ring {

#define OVERLAP_TUNABLES_FILE "opal/mca/btl/ring/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

namespace {

constexpr const char* prefix = "btl_ring_";

std::string read(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("tunables: the table is well formed") {
  Tunables values;
  const auto rows = tunable_rows(values);
  CHECK(table_fault(rows) == "");
}

// Prints the rows, to be pasted, when OVERLAP_PRINT_ROWS is set.
TEST_CASE("tunables: README and man page hold every row as the table renders it") {
  Tunables values;
  const auto rows = tunable_rows(values);
  const std::string markdown = render_markdown(prefix, rows);
  const std::string man = render_man(prefix, rows);
  if (std::getenv("OVERLAP_PRINT_ROWS") != nullptr) {
    std::printf("%s\n%s\n", markdown.c_str(), man.c_str());
  }
  const char* source = std::getenv("OVERLAP_SOURCE");
  REQUIRE(source != nullptr);  // make check sets it
  CHECK(read(std::string(source) + "/README.md").find(markdown) != std::string::npos);
  CHECK(read(std::string(source) + "/docs/man/overlap.7").find(man) != std::string::npos);
}

}  // namespace overlap::ring
