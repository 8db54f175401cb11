// Naps of a call that waits.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/idle_naps.hpp"

#include "test/support/catch.hpp"

using overlap::IdleNaps;
using overlap::NapsBesideOther;

namespace {

/// Turns without an event until the first nap. @returns  their number
std::uint32_t turns_to_nap(IdleNaps& naps, std::uint32_t events) {
  std::uint32_t turns = 1;
  while (naps.end_turn(events) == 0) ++turns;
  return turns;
}

}  // namespace

TEST_CASE("IdleNaps: naps begin late, are a small share of the wait, and have a limit") {
  IdleNaps naps;
  CHECK(turns_to_nap(naps, 0) == IdleNaps::turns_before_naps + 1);
  std::uint64_t slept_ns = IdleNaps::nap.min_ns;
  std::uint32_t last_ns = 0;
  while (slept_ns < 1'000'000'000) {
    const std::uint32_t nap_ns = naps.end_turn(0);
    REQUIRE(nap_ns >= std::max(last_ns, IdleNaps::nap.min_ns));
    REQUIRE(nap_ns <= std::max<std::uint64_t>(slept_ns / 256, IdleNaps::nap.min_ns));
    slept_ns += last_ns = nap_ns;
  }
  CHECK(last_ns == IdleNaps::nap.max_ns);
}

TEST_CASE("IdleNaps: nobody sleeps between the pieces of a message") {
  IdleNaps naps;
  static_cast<void>(turns_to_nap(naps, 7));
  for (int nap = 0; nap < 1000; ++nap) static_cast<void>(naps.end_turn(7));
  REQUIRE(naps.end_turn(7) > IdleNaps::nap.min_ns);
  for (std::uint32_t events = 8; events < 100;
       ++events) {  // 7 events so far, then one piece a time
    CHECK(naps.end_turn(events) == 0);
    for (int turn = 0; turn < 1000; ++turn) CHECK(naps.end_turn(events) == 0);
  }
  CHECK(turns_to_nap(naps, 99) == IdleNaps::turns_before_naps - 1000 + 1);
  CHECK(naps.end_turn(99) == IdleNaps::nap.min_ns);  // they begin short again
}

TEST_CASE("IdleNaps: a count that wraps is an event") {
  IdleNaps naps;
  static_cast<void>(turns_to_nap(naps, UINT32_MAX));
  CHECK(naps.end_turn(0) == 0);
}

TEST_CASE("NapsBesideOther: short at first, at most half a millisecond") {
  NapsBesideOther naps;
  for (std::uint32_t turn = 0; turn < NapsBesideOther::turns_before_naps; ++turn)
    REQUIRE(naps.end_turn() == 0);
  std::uint64_t slept_ns = 0;
  std::uint32_t last_ns = 0;
  while (slept_ns < 20'000'000) {
    const std::uint32_t nap_ns = naps.end_turn();
    REQUIRE(nap_ns >= std::max(last_ns, NapsBesideOther::nap.min_ns));
    REQUIRE(nap_ns <= std::max<std::uint64_t>(slept_ns / 32, NapsBesideOther::nap.min_ns));
    slept_ns += last_ns = nap_ns;
  }
  CHECK(last_ns == NapsBesideOther::nap.max_ns);
}
