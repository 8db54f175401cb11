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
      {"all granted by a batch system", {64, 4, 1, 1, 128, 128}, true},
      {"a part of a node, to which the job is confined", {8, 4, 1, 1, 16, 16}, true},
      {"a part of a node, and the job sees all of it", {64, 4, 1, 1, 128, 16}, false},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(leaves_core_to_spare(row.use) == row.spare);
  }
}
