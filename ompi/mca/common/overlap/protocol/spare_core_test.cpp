// When a core counts as spare.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/spare_core.hpp"

#include "test/support/catch.hpp"

TEST_CASE("a core is to spare where processes and their threads leave one", "[interrupt][P4.6]") {
  struct Row {
    const char* what;
    overlap::CoreUse use;
    bool spare;
  };
  const Row rows[] = {
      {"not known", {.cores = 0}, false},
      {"a core for each", {.cores = 2, .processes = 2, .bound_cores = 1}, false},
      {"more processes than cores", {.cores = 2, .processes = 8, .bound_cores = 2}, false},
      {"one process, bound to one of two", {.cores = 2, .processes = 1, .bound_cores = 1}, true},
      {"one process, not bound", {.cores = 8, .processes = 1, .bound_cores = 8}, true},
      {"half a node, bound to cores", {.cores = 64, .processes = 32, .bound_cores = 1}, true},
      {"half a node, bound to sockets", {.cores = 64, .processes = 32, .bound_cores = 32}, true},
      {"a full node, bound to sockets", {.cores = 64, .processes = 64, .bound_cores = 32}, false},
      {"a full node of hybrid processes, bound", {64, 4, 16, 1}, false},
      {"three of four of them", {64, 3, 16, 1}, true},
      {"hybrid, not bound, the environment says so", {64, 4, 64, 16}, false},
      {"the same with fewer threads", {64, 4, 64, 8}, true},
      {"threads: none", {.cores = 2, .processes = 2, .bound_cores = 0, .threads = 0}, false},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(leaves_core_to_spare(row.use) == row.spare);
  }
}

TEST_CASE("cores in sight may be others' where less was granted", "[interrupt][P4.6]") {
  struct Row {
    const char* what;
    overlap::CoreUse use;
    bool others;
  };
  const Row rows[] = {
      {"nothing is said", {.processors = 128, .granted = 0, .online = 128}, false},
      {"all of the node", {.processors = 128, .granted = 128, .online = 128}, false},
      {"a part, to which the job is confined",
       {.cores = 8, .processors = 16, .granted = 16, .online = 128},
       false},
      {"the same, counted in cores",
       {.cores = 8, .processors = 16, .granted = 8, .online = 128},
       false},
      {"a part, and the job sees all",
       {.cores = 64, .processors = 128, .granted = 16, .online = 128},
       true},
      {"a part, and the job sees all but what the system keeps",
       {.cores = 60, .processors = 120, .granted = 16, .online = 128},
       true},
      {"all cores, or half the node",
       {.cores = 64, .processors = 128, .granted = 64, .online = 128},
       true},
      {"nobody knows how many there are",
       {.cores = 64, .processors = 128, .granted = 64, .online = 0},
       true},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(may_see_others_cores(row.use) == row.others);
  }
}
