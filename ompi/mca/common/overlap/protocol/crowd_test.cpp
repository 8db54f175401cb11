// When a processor counts as crowded.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/crowd.hpp"

#include "test/support/catch.hpp"

using overlap::Crowd;
using overlap::ProcessorAccount;

namespace {

constexpr std::uint64_t ms = 1'000'000;
constexpr ProcessorAccount at(std::uint64_t now, std::uint64_t waited, std::uint64_t own) {
  return {.now_ns = now * ms, .mpi_waited_ns = waited * ms, .own_ns = own * ms};
}

}  // namespace

TEST_CASE("crowd: who waits for more than a quarter of the time is in one", "[interrupt]") {
  Crowd crowd;
  CHECK_FALSE(crowd.is_crowded());
  crowd.look(at(1000, 500, 100));  // the first one compares with nothing
  CHECK_FALSE(crowd.is_crowded());
  crowd.look(at(1080, 520, 100));
  CHECK_FALSE(crowd.is_crowded());
  crowd.look(at(1160, 541, 100));
  CHECK(crowd.is_crowded());
  crowd.look(at(1240, 541, 100));
  CHECK_FALSE(crowd.is_crowded());
}

TEST_CASE("crowd: the interrupt thread's own turns are none", "[interrupt]") {
  Crowd crowd;
  crowd.look(at(0, 0, 0));
  crowd.look(at(80, 70, 50));  // it moves data while the MPI thread computes
  CHECK_FALSE(crowd.is_crowded());
  crowd.look(at(160, 141, 100));
  CHECK(crowd.is_crowded());
}

TEST_CASE("crowd: without an account there is none", "[interrupt]") {
  Crowd crowd;
  crowd.look(at(0, 0, 0));
  crowd.look(at(80, 80, 0));
  REQUIRE(crowd.is_crowded());
  crowd.look(std::nullopt);  // the thread has ended
  CHECK_FALSE(crowd.is_crowded());
  crowd.look(at(200, 300, 0));
  CHECK_FALSE(crowd.is_crowded());
}

TEST_CASE("crowd: a look is due at once, then after an interval", "[interrupt]") {
  Crowd crowd;
  CHECK(crowd.is_due(0));
  crowd.look(at(1000, 0, 0));
  CHECK_FALSE(crowd.is_due(1000 * ms + Crowd::interval_ns - 1));
  CHECK(crowd.is_due(1000 * ms + Crowd::interval_ns));
}
