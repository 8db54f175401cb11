// Version and size comparison.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/version_check.hpp"
#include "opal/mca/common/overlap/contains.hpp"

#include <array>

using namespace overlap;

TEST_CASE("equal versions match, others are named", "[version]") {
  CHECK(version_fault("4.1.4", "4.1.4").empty());
  CHECK(version_fault("4.1.4", "4.1.5") ==
        "This component was built for Open MPI 4.1.4, but Open MPI 4.1.5 is running.");
  CHECK_THAT(version_fault("4.1.4", ""), contains("unknown version"));
  CHECK_FALSE(version_fault("4.1.4", "4.1.40").empty());
}

TEST_CASE("sizes match or every difference is named", "[version]") {
  const std::array<SizeRow, 2> same{{{"a_t", 8, 8}, {"b_t", 16, 16}}};
  const std::array<SizeRow, 3> other{{{"a_t", 8, 12}, {"b_t", 16, 16}, {"c_t", 4, 2}}};
  CHECK(sizes_match(same));
  CHECK(sizes_match({}));
  CHECK(size_fault(same).empty());
  CHECK_FALSE(sizes_match(other));
  CHECK_THAT(size_fault(other), contains("a_t 8 against 12 bytes, c_t 4 against 2 bytes."));
}
