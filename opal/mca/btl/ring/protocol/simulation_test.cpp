// Processes of the real protocol on a modelled network: every message once, in order, with its
// bytes; and the planted faults that must be noticed.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>

#include "simulated_process.hpp"
#include "test/support/catch.hpp"

using namespace overlap::ring;
using namespace overlap::ring::sim;

namespace {

constexpr std::uint32_t turns = 8000;

void hold(const Options& options, std::uint64_t seeds, Tally& tally) {
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    CAPTURE(seed);
    REQUIRE(run(options, seed, turns, tally) == "");
  }
}

}  // namespace

TEST_CASE(
    "Simulation: two processes, rings of 5 slots, opened and closed in flight (P2.2, P2.4, P2.5, "
    "P3.2)") {
  Tally tally;
  for (const PollOrder order : {PollOrder::sequential, PollOrder::circular, PollOrder::recent}) {
    Options options;
    options.order = order;
    hold(options, 40, tally);
  }
  // Everything that this is about has happened, and often.
  CHECK(tally.delivered > 50000);
  CHECK(tally.through_rings > 5 * 1000);  // so each ring of 5 has wrapped many times
  CHECK(tally.in_place > 5000);
  CHECK(tally.full_rings > 1000);
  CHECK(tally.held > 1000);
  CHECK(tally.closed > 200);
  CHECK(tally.refused > 10);
  CHECK(tally.unordered > 1000);
  CHECK(tally.explicit_messages > 1000);
}

TEST_CASE("Simulation: more peers than the polling set holds, members change (P2.6)") {
  for (const SetPolicy policy : {SetPolicy::first, SetPolicy::traffic}) {
    Tally tally;
    Options options;
    options.processes = 5;
    options.set_capacity = 2;
    options.policy = policy;
    hold(options, 40, tally);
    CHECK(tally.through_rings > 5000);
    CHECK(tally.closed > 100);
  }
}

TEST_CASE("Simulation: shapes of rings (P2.1)") {
  Options options;
  for (const std::uint32_t slots : {1U, 2U, 5U, 32U}) {
    for (const std::uint32_t slot_bytes : {64U, 128U, 512U}) {
      for (const std::uint32_t in_place_pct : {0U, 50U, 100U}) {
        CAPTURE(slots, slot_bytes, in_place_pct);
        options.slots = slots;
        options.slot_bytes = slot_bytes;
        options.in_place_pct = in_place_pct;
        Tally tally;
        hold(options, 3, tally);
        CHECK(tally.through_rings > 100);
      }
    }
  }
}

TEST_CASE("Simulation: without a polling set everything goes through the channel (P2.5)") {
  Options options;
  options.set_capacity = 0;
  Tally tally;
  hold(options, 5, tally);
  CHECK(tally.delivered > 1000);
  CHECK(tally.through_rings == 0);
}

TEST_CASE("Simulation: planted faults are noticed") {
  struct Planted {
    const char* name;
    Fault fault;
  };
  const Planted faults[] = {
      {"one flag value only (P2.2)", Fault::one_flag_value},
      {"tail bytes not cleared after in_place (P3.2)", Fault::tails_not_cleared},
      {"tail bytes cleared before the slot is freed (P3.2)", Fault::tails_cleared_early},
      {"head flag and size not cleared (P2.2)", Fault::header_not_cleared},
      {"size not cleared (P2.2)", Fault::size_not_cleared},
      {"credits taken and not sent (P2.4)", Fault::credits_not_sent},
      {"credits sent after close_ring (P2.6)", Fault::credits_after_close},
      {"ring_closed obeyed out of its turn (P2.6)", Fault::ring_closed_early},
      {"sender's slots given back under writes (P2.6)", Fault::slots_freed_early},
  };
  for (const Planted& planted : faults) {
    CAPTURE(planted.name);
    Options options;
    options.fault = planted.fault;
    Tally tally;
    std::string noticed;
    std::uint64_t seed = 0;
    for (; seed < 20 && noticed.empty(); ++seed) noticed = run(options, seed, turns, tally);
    CHECK(noticed != "");
    std::printf("planted: %-52s -> %s\n", planted.name,
                noticed.empty() ? "NOT NOTICED" : noticed.c_str());
  }
}
