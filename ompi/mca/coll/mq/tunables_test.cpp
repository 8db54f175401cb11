// The table of tunables is well formed, and the documents say what it says.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/documented_tunables.hpp"

namespace overlap::coll_mq {

#define OVERLAP_TUNABLES_FILE "ompi/mca/coll/mq/tunables.def"
#include "opal/mca/common/overlap/tunables_expand.hpp"

TEST_CASE("tunables: the documents hold every row as the table renders it") {
  Tunables values;
  check_documented("coll_mq_", tunable_rows(values));
}

}  // namespace overlap::coll_mq
