// Matching, the table of waits, arrivals, and who is to wake: each alone.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/node/wake.hpp"

#include "test/support/catch.hpp"

#include <atomic>
#include <thread>
#include <vector>

namespace {

using overlap::node::any;
using overlap::node::Area;
using overlap::node::arrivals_max;
using overlap::node::claim_wake;
using overlap::node::decide_wake;
using overlap::node::Doze;
using overlap::node::Envelope;
using overlap::node::is_waited_for;
using overlap::node::matches;
using overlap::node::stop_watching;
using overlap::node::take_arrivals;
using overlap::node::take_each_arrival;
using overlap::node::try_leave;
using overlap::node::WaitKind;
using overlap::node::Waits;
using overlap::node::waits_max;
using overlap::node::WakeDecision;
using overlap::node::watch_until;

constexpr Envelope message(std::uint32_t context, std::int32_t source, std::int32_t tag) {
  return {WaitKind::message, context, source, tag};
}
constexpr std::uint32_t now_ms = 5000;

}  // namespace

TEST_CASE("waits match by MPI's rules", "[wake][P4.5]") {
  struct Row {
    Envelope wait, arrival;
    bool match;
  };
  const Row rows[] = {
      {message(3, 1, 7), message(3, 1, 7), true},
      {message(3, 1, 7), message(4, 1, 7), false},
      {message(3, 1, 7), message(3, 2, 7), false},
      {message(3, 1, 7), message(3, 1, 8), false},
      {message(3, any, 7), message(3, 9, 7), true},
      {message(3, any, 7), message(3, 9, 8), false},
      {message(3, 1, any), message(3, 1, 0), true},
      {message(3, any, any), message(3, 5, 123456789), true},
      {message(3, any, any), message(4, 5, 0), false},
      // Negative tags are Open MPI's own: a wildcard does not take them, an equal one does.
      {message(3, any, any), message(3, 5, -17), false},
      {message(3, 5, -17), message(3, 5, -17), true},
      // An origin that waits for one target is not woken for another one (P4.11).
      {{WaitKind::epoch, 3, 1, 0}, {WaitKind::epoch, 3, 2, 0}, false},
      {{WaitKind::epoch, 3, 1, 0}, {WaitKind::epoch, 3, 1, 0}, true},
      {{WaitKind::epoch, 3, 1, 0}, message(3, 1, 0), false},
      {{WaitKind::step, 3, 1, 4}, {WaitKind::step, 3, 1, 4}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.wait.context, row.wait.source, row.wait.tag, row.arrival.source, row.arrival.tag);
    CHECK(matches(row.wait, row.arrival) == row.match);
  }
}

TEST_CASE("words keep every field", "[wake]") {
  for (const Envelope each :
       {message(0, 0, 0), message(UINT32_MAX, INT32_MAX, INT32_MAX), message(1, any, any),
        Envelope{WaitKind::step, 77, INT32_MIN, INT32_MIN}}) {
    using namespace overlap::node;
    CHECK(decode(first_word(each), second_word(each, 0xffffffff)) == each);
    CHECK(second_word(each, 0) != 0);
  }
}

TEST_CASE("a wait is found until it is removed", "[wake][P4.4]") {
  Area area;
  Waits waits(&area);
  CHECK_FALSE(is_waited_for(area, message(1, 2, 3)));
  const auto first = waits.add(message(1, 2, 3));
  const auto second = waits.add(message(1, any, 9));
  CHECK(is_waited_for(area, message(1, 2, 3)));
  CHECK(is_waited_for(area, message(1, 7, 9)));
  CHECK_FALSE(is_waited_for(area, message(1, 7, 8)));
  waits.remove(first);
  CHECK_FALSE(is_waited_for(area, message(1, 2, 3)));
  CHECK(is_waited_for(area, message(1, 7, 9)));
  CHECK(waits.add(message(1, 2, 4)) == first);  // its place is used again
  waits.remove(second);
  CHECK(is_waited_for(area, message(1, 2, 4)));
  CHECK_FALSE(is_waited_for(area, message(1, 7, 9)));
}

TEST_CASE("answers to one's own requests are always waited for", "[wake]") {
  Area area;
  CHECK(is_waited_for(area, {.kind = WaitKind::answer}));
}

TEST_CASE("a full table of waits wakes too often and never too seldom", "[wake][P4.4]") {
  Area area;
  Waits waits(&area);
  std::vector<std::uint8_t> places;
  for (std::size_t i = 0; i < waits_max; ++i) {
    places.push_back(waits.add(message(1, 0, static_cast<std::int32_t>(i))));
  }
  CHECK_FALSE(is_waited_for(area, message(2, 0, 0)));
  const auto one_more = waits.add(message(2, 0, 0));
  CHECK(one_more == Waits::unlisted);
  CHECK(is_waited_for(area, message(2, 0, 0)));
  CHECK(is_waited_for(area, message(99, 0, 0)));  // too many
  waits.remove(one_more);
  CHECK_FALSE(is_waited_for(area, message(99, 0, 0)));
  for (const auto place : places) waits.remove(place);
  CHECK_FALSE(is_waited_for(area, message(1, 0, 0)));
}

TEST_CASE("waits of a process without an area cost nothing", "[wake]") {
  Waits waits;
  waits.remove(waits.add(message(1, 2, 3)));
  SUCCEED();
}

TEST_CASE("who is to wake", "[wake][P4.5]") {
  struct Row {
    const char* what;
    Doze doze;
    bool waits;
    std::uint32_t watched_until_ms;
    WakeDecision decision;
  };
  using enum WakeDecision;
  const Row rows[] = {
      {"armed", Doze::armed, true, 0, ring},
      {"armed, for something else", Doze::armed, false, 0, nothing},
      {"looks itself", Doze::awake, true, 0, nothing},
      {"wakes by itself", Doze::napping, true, 0, nothing},
      {"woken by somebody else", Doze::claimed, true, 0, nothing},
      {"wants nothing", Doze::parked, true, 0, nothing},
      {"watched", Doze::armed, true, now_ms + 2, hand_on},
      {"the helper has stopped", Doze::armed, true, now_ms - 1, ring},
      {"garbage", Doze::armed, true, now_ms + 100000, ring},
      {"watched, for something else", Doze::armed, false, now_ms + 2, nothing},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    Area area;
    Waits waits(&area);
    if (row.waits) static_cast<void>(waits.add(message(1, 2, 3)));
    area.doze = row.doze;
    area.watched_until_ms = row.watched_until_ms;
    CHECK(decide_wake(area, message(1, 2, 3), now_ms) == row.decision);
  }
}

TEST_CASE("the helper's time wraps", "[wake]") {
  Area area;
  Waits waits(&area);
  static_cast<void>(waits.add(message(1, 2, 3)));
  area.doze = Doze::armed;
  area.watched_until_ms = 1;  // after the wrap
  CHECK(decide_wake(area, message(1, 2, 3), UINT32_MAX) == WakeDecision::hand_on);
}

TEST_CASE("of several arrivals one rings", "[wake]") {
  Area area;
  Waits waits(&area);
  static_cast<void>(waits.add(message(1, any, 3)));
  area.doze = Doze::armed;
  std::atomic<int> rings{0};
  std::vector<std::thread> senders;
  for (int i = 0; i < 4; ++i) {
    senders.emplace_back([&, i] {
      const bool ring = decide_wake(area, message(1, i, 3), now_ms) == WakeDecision::ring;
      rings += ring && claim_wake(area) ? 1 : 0;
    });
  }
  for (std::thread& each : senders) each.join();
  CHECK(rings == 1);
}

TEST_CASE("arrivals are left for the helper and taken once", "[wake][P4.2]") {
  Area area;
  Waits waits(&area);
  CHECK_FALSE(take_arrivals(area));
  static_cast<void>(waits.add(message(1, 2, 3)));
  area.watched_until_ms = now_ms;
  CHECK(try_leave(area, message(1, 2, 4)));
  CHECK_FALSE(take_arrivals(area));  // nobody waits for it
  CHECK(try_leave(area, message(1, 2, 4)));
  CHECK(try_leave(area, message(1, 2, 3)));
  CHECK(take_arrivals(area));
  CHECK_FALSE(take_arrivals(area));
  CHECK(area.claimed == 0);
}

TEST_CASE("no arrival is left where there is no room", "[wake]") {
  Area area;
  area.watched_until_ms = now_ms;
  for (std::size_t i = 0; i < arrivals_max; ++i) CHECK(try_leave(area, message(1, 2, 3)));
  CHECK_FALSE(try_leave(area, message(1, 2, 3)));
  static_cast<void>(take_arrivals(area));
  CHECK(try_leave(area, message(1, 2, 3)));
}

TEST_CASE("arrivals of many senders reach the helper", "[wake][P4.13]") {
  Area area;
  Waits waits(&area);
  area.watched_until_ms = now_ms;
  constexpr int senders_count = 3;
  constexpr int each_count = 2000;
  // Only the last one of each is waited for, so that each has to be read right.
  for (int i = 0; i < senders_count; ++i) {
    static_cast<void>(waits.add(message(1, i, each_count - 1)));
  }
  std::atomic<int> running{senders_count};
  std::vector<std::thread> senders;
  for (int i = 0; i < senders_count; ++i) {
    senders.emplace_back([&, i] {
      for (int k = 0; k < each_count; ++k) {
        while (!try_leave(area, message(1, i, k))) std::this_thread::yield();
      }
      --running;
    });
  }
  int wanted = 0;
  while (running > 0 || area.full != 0) wanted += take_arrivals(area) ? 1 : 0;
  for (std::thread& each : senders) each.join();
  CHECK(wanted >= 1);
  CHECK(wanted <= senders_count);
  CHECK(area.claimed == 0);
}

TEST_CASE("an arrival for a helper that has stopped is the sender's to announce", "[wake]") {
  Area area;
  Waits waits(&area);
  static_cast<void>(waits.add(message(1, 2, 3)));
  area.doze = Doze::armed;
  watch_until(area, now_ms, 3);
  REQUIRE(decide_wake(area, message(1, 2, 3), now_ms) == WakeDecision::hand_on);
  // Between the decision and the arrival the helper stops, and looks for the last time.
  stop_watching(area);
  CHECK_FALSE(take_arrivals(area));
  CHECK_FALSE(try_leave(area, message(1, 2, 3)));
  CHECK(take_arrivals(area));  // what was left there anyhow
}

TEST_CASE("a helper's time is never the word for none", "[wake]") {
  Area area;
  watch_until(area, UINT32_MAX - 2, 3);
  CHECK(area.watched_until_ms == 1);
}

TEST_CASE("garbage among the arrivals is taken and nothing else", "[wake][P4.2]") {
  Area area;
  area.full = UINT64_MAX;  // nobody has claimed them
  for (std::size_t i = 0; i < arrivals_max; i += 2) area.arrivals[i].second = UINT64_MAX - i;
  std::size_t taken = 0;
  CHECK(take_each_arrival(area, [&](const Envelope&) { ++taken; }));
  CHECK(taken == arrivals_max / 2);
  CHECK(area.full == 0);
  CHECK(area.claimed == 0);
}
