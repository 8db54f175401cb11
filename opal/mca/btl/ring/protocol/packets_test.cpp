// Which limits of packets go together.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/btl/ring/protocol/packets.hpp"

#include "test/support/catch.hpp"

using overlap::ring::PacketLimit;

TEST_CASE("packets have one size, or the ends do not connect") {
  struct Row {
    const char* what;
    PacketLimit one, other;
    bool agree;
  };
  const Row rows[] = {
      {"nothing is set", {4096, 0}, {4096, 0}, true},
      {"ports of two sizes", {4096, 0}, {1024, 0}, true},
      {"the same limit", {4096, 2048}, {4096, 2048}, true},
      {"one end is limited", {4096, 2048}, {4096, 0}, false},
      {"two limits", {4096, 2048}, {4096, 1024}, false},
      {"a limit that the port has anyway", {4096, 4096}, {4096, 0}, true},
      {"a limit that the other port has anyway", {4096, 1024}, {1024, 0}, true},
      {"two limits above what the path has", {1024, 2048}, {4096, 4096}, true},
      {"a device without packets", {0, 4096}, {0, 1024}, true},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(have_one_size(row.one, row.other) == row.agree);
    CHECK(have_one_size(row.other, row.one) == row.agree);
  }
}
