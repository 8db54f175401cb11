// The table of tunables is well formed, and the documents say what it says.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/documented_tunables.hpp"

namespace overlap::newrma {

#define OVERLAP_TUNABLES_FILE "ompi/mca/osc/newrma/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

TEST_CASE("tunables: the documents hold every row as the table renders it") {
  Tunables values;
  check_documented("osc_newrma_", tunable_rows(values));
}

}  // namespace overlap::newrma
