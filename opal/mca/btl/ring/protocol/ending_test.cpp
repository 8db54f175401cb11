// A peer's ending: stories, every state with every event, and seeded walks.
// SPDX-License-Identifier: BSD-3-Clause
#include "ending.hpp"

#include <array>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

using S = EndingState;
using E = EndingEvent;
using A = EndingAction;
constexpr std::array states{S::used, S::parting, S::left, S::failed, S::failed_expected, S::ended};
constexpr std::array events{E::part_called, E::goodbye_seen, E::post_failed, E::loss_known,
                            E::released};

/// A cell of the table in ending.hpp.
struct Cell {
  S next;
  A action = A::none;
  Cell(S state, A act = A::none) : next(state), action(act) {}
};

Cell expected(S state, E event) {
  const Cell report{S::ended, A::report_lost};
  // [state][event], in the order of `states` and `events`
  const Cell table[6][5] = {
      {S::parting, S::left, S::failed, report, S::ended},
      {S::parting, S::left, S::failed_expected, S::ended, S::ended},
      {S::left, S::left, S::failed_expected, S::ended, S::ended},
      {S::failed_expected, S::failed_expected, S::failed, report, S::ended},
      {S::failed_expected, S::failed_expected, S::failed_expected, S::ended, S::ended},
      {S::ended, S::ended, S::ended, S::ended, S::ended},
  };
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

}  // namespace

TEST_CASE("Ending: a peer that dies is reported once") {
  Ending peer;
  CHECK(peer.usable());
  CHECK(peer.listens());
  CHECK(peer.take(E::post_failed) == A::none);
  CHECK(!peer.usable());
  CHECK(!peer.ended());
  CHECK(peer.take(E::loss_known) == A::report_lost);
  CHECK(peer.ended());
  CHECK(peer.take(E::loss_known) == A::none);
}

TEST_CASE("Ending: a peer that has said goodbye can be sent to and is not reported") {
  Ending peer;
  CHECK(peer.take(E::goodbye_seen) == A::none);
  CHECK(peer.usable());
  CHECK(!peer.listens());
  CHECK(peer.take(E::loss_known) == A::none);
  CHECK(peer.ended());
}

TEST_CASE("Ending: every state with every event") {
  for (const S state : states) {
    for (const E event : events) {
      CAPTURE(static_cast<int>(state), static_cast<int>(event));
      const EndingStep got = step(state, event);
      CHECK(got.next == expected(state, event).next);
      CHECK(got.action == expected(state, event).action);
    }
  }
}

TEST_CASE("Ending: at most one report, none of an end that was announced, and no way back") {
  std::mt19937 random(1);
  for (int walk = 0; walk < 2000; ++walk) {
    Ending peer;
    bool announced = false, released = false;
    int reports = 0;
    for (int i = 0; i < 8; ++i) {
      const bool usable = peer.usable(), listens = peer.listens(), ended = peer.ended();
      const E event = events[random() % events.size()];
      if (peer.take(event) == A::report_lost) {
        ++reports;
        REQUIRE(!announced);
        REQUIRE(!released);
      }
      announced = announced || event == E::part_called || event == E::goodbye_seen;
      released = released || event == E::released;
      REQUIRE(usable >= peer.usable());
      REQUIRE(listens >= peer.listens());
      REQUIRE(ended <= peer.ended());
    }
    REQUIRE(reports <= 1);
  }
}

TEST_CASE("Ending: a fault is unexplained until its reason is known, an announced end never is") {
  Ending peer;
  CHECK(peer.unexplained());
  peer.take(EndingEvent::post_failed);
  CHECK(peer.unexplained());
  peer.take(EndingEvent::loss_known);
  CHECK(!peer.unexplained());
  for (const EndingEvent announced : {EndingEvent::part_called, EndingEvent::goodbye_seen}) {
    Ending announces;
    announces.take(announced);
    CHECK(!announces.unexplained());
    announces.take(EndingEvent::post_failed);
    CHECK(!announces.unexplained());
  }
}
