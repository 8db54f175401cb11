// The table of tunables is well formed, and the documents say what it says.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/documented_tunables.hpp"

#include <set>
#include <string>

namespace overlap::speculative {

#define OVERLAP_TUNABLES_FILE "ompi/mca/pml/speculative/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

TEST_CASE("tunables: the documents hold every row as the table renders it") {
  Tunables values;
  check_documented("pml_speculative_", tunable_rows(values));
}

TEST_CASE("tunables: no name is one of common_overlap's, which are synonyms of this component's") {
  const std::set<std::string> shared{
#define X(name, ...) #name,
#define X_CHOICE(name, ...) #name,
#define X_TEXT(name, ...) #name,
#include "ompi/mca/common/overlap/tunables.def"
#undef X
#undef X_CHOICE
#undef X_TEXT
  };
  CHECK(shared.size() > 1);
  Tunables values;
  for (const TunableRow& row : tunable_rows(values)) {
    CAPTURE(row.name);
    CHECK(shared.count(row.name) == 0);
  }
}

}  // namespace overlap::speculative
