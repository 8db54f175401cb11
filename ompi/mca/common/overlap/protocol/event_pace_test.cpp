// Turns of an event loop that may bring connections.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/protocol/event_pace.hpp"

#include "test/support/catch.hpp"

using overlap::EventPace;

namespace {

/// A poll loop whose turns are that far apart.
struct PollLoop {
  EventPace pace;
  std::uint64_t now_ns = 5'000'000'000;
  std::uint32_t turn = 0;
  unsigned looks = 0;

  /// @returns  turns of the event loop
  unsigned run(unsigned turns, std::uint64_t apart_ns, bool quiet) {
    unsigned turned = 0;
    for (unsigned i = 0; i < turns; ++i) {
      now_ns += apart_ns;
      if (!pace.looks_at_clock(++turn)) continue;
      ++looks;
      turned += pace.is_due(now_ns, turn, quiet) ? 1 : 0;
    }
    return turned;
  }
};

constexpr std::uint64_t second_ns = 1'000'000'000;

}  // namespace

TEST_CASE("EventPace: the first turn has one") {
  PollLoop loop;
  CHECK(loop.run(1, 50, false) == 1);
  CHECK(loop.run(1, 50, false) == 0);
}

TEST_CASE("EventPace: fast turns look at the clock each 16th time") {
  PollLoop loop;
  loop.run(32, 100, true);
  loop.looks = 0;
  loop.run(16'000, 100, true);
  CHECK(loop.looks == 1000);
}

TEST_CASE("EventPace: each 10 ms while messages come, each 100 us while none do") {
  PollLoop loop;
  loop.run(16, 100, false);
  const unsigned turns = second_ns / 100;
  CHECK(loop.run(turns, 100, false) == 100);
  const unsigned quiet = loop.run(turns, 100, true);
  // The look behind the 100 us comes 16 turns later at most.
  CHECK(quiet <= second_ns / EventPace::quiet_period_ns);
  CHECK(quiet >= second_ns / (EventPace::quiet_period_ns + 16 * 100));
}

TEST_CASE("EventPace: calls that are seldom have a turn each") {
  const std::uint64_t apart_ns = GENERATE(200'000, 20'000'000);
  PollLoop loop;
  loop.run(32, 100, true);
  loop.run(16, apart_ns, true);  // the clock is looked at
  CHECK(loop.run(1008, apart_ns, true) == 1008);
  // Turns in a row again: so many look before the average is theirs.
  loop.looks = 0;
  loop.run(160, 100, true);
  CHECK(loop.looks == 16 + 144 / 16);
}

// A call that finds nothing takes two turns, and others are made behind it.
TEST_CASE("EventPace: of calls that are seldom each has a turn, however many it takes") {
  const unsigned turns_of_call = GENERATE(1U, 2U, 3U, 4U, 7U);
  PollLoop loop;
  loop.run(32, 100, true);
  const auto call = [&] {
    return loop.run(1, 20'000'000, true) + loop.run(turns_of_call - 1, 2'000, true);
  };
  for (unsigned i = 0; i < 16; i += turns_of_call) call();  // the clock is looked at
  for (unsigned i = 0; i < 1000; ++i) REQUIRE(call() == 1);
}

TEST_CASE("EventPace: the number of the turn wraps") {
  PollLoop loop;
  loop.turn = UINT32_MAX - 47;
  loop.run(32, 100, true);
  loop.looks = 0;
  loop.run(160, 100, true);
  CHECK(loop.looks == 10);
}
