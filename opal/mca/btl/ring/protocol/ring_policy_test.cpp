// The table of ring_policy.hpp.
// SPDX-License-Identifier: BSD-3-Clause
#include "ring_policy.hpp"

#include "test/support/catch.hpp"

using namespace overlap::ring;

TEST_CASE("A ring is given where the tail arrives last, or where the user insists (P2.2)") {
  struct Row {
    TailOrder tail;
    bool fits;
    bool automatic;
  };
  constexpr Row rows[] = {
      {TailOrder::guaranteed, true, true},        {TailOrder::guaranteed, false, true},
      {TailOrder::assumed_in_packet, true, true}, {TailOrder::assumed_in_packet, false, false},
      {TailOrder::unknown, true, false},          {TailOrder::unknown, false, false}};
  for (const Row& row : rows) {
    const std::uint32_t packet_bytes = row.fits ? 2048 : 2047;
    CAPTURE(static_cast<int>(row.tail), row.fits);
    CHECK(may_open_ring(RingPolicy::automatic, row.tail, 2048, packet_bytes) == row.automatic);
    CHECK(may_open_ring(RingPolicy::force, row.tail, 2048, packet_bytes));
    CHECK_FALSE(may_open_ring(RingPolicy::off, row.tail, 2048, packet_bytes));
  }
}
