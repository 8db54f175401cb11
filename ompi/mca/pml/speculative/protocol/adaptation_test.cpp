// Adaptation: when the speculation of an envelope stops, and when it is tried again.
// SPDX-License-Identifier: BSD-3-Clause
#include "adaptation.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

void feed(Adaptation& state, int received, int used) {
  for (int i = 0; i < received; ++i) note_rtr_received(state, 1);
  for (int i = 0; i < used; ++i) note_rtr_used(state);
}

}  // namespace

TEST_CASE("Adaptation: no judgement before the minimum sample (P1.11)") {
  const AdaptationRules rules;
  Adaptation state;
  feed(state, static_cast<int>(rules.min_sample_rtrs) - 1, 0);
  CHECK(before_rts(rules, state, 0) == Advice::keep);
  note_rtr_received(state, 1);
  CHECK(before_rts(rules, state, 0) == Advice::stop);
}

TEST_CASE("Adaptation: at the threshold it goes on, below it stops (P1.11)") {
  const AdaptationRules rules;  // 80 %
  Adaptation at;
  feed(at, 20, 16);
  CHECK(before_rts(rules, at, 0) == Advice::keep);
  Adaptation below;
  feed(below, 20, 15);
  CHECK(before_rts(rules, below, 0) == Advice::stop);
  CHECK(below.stopped);
}

TEST_CASE("Adaptation: it resumes after the interval, with a clean record (P1.11)") {
  AdaptationRules rules;
  rules.resume_interval_rts = 5;
  Adaptation state;
  feed(state, 16, 0);
  REQUIRE(before_rts(rules, state, 0) == Advice::stop);
  for (int i = 0; i < 4; ++i) CHECK(before_rts(rules, state, 0) == Advice::keep);
  CHECK(before_rts(rules, state, 0) == Advice::resume);
  CHECK_FALSE(state.stopped);
  CHECK(before_rts(rules, state, 0) == Advice::keep);
}

TEST_CASE("Adaptation: old behaviour fades, a new pattern is noticed soon (P1.11)") {
  const AdaptationRules rules;
  Adaptation state;
  for (int i = 0; i < 100000; ++i) feed(state, 1, 1);
  CHECK(before_rts(rules, state, 0) == Advice::keep);
  CHECK(state.received_rtrs <= 256);
  int unused = 0;
  while (before_rts(rules, state, 0) == Advice::keep) {
    note_rtr_received(state, 1);
    ++unused;
    REQUIRE(unused < 128);
  }
  CHECK(state.stopped);
}

TEST_CASE("Adaptation: switched off, it never advises anything (P1.11)") {
  AdaptationRules rules;
  rules.enabled = false;
  Adaptation state;
  feed(state, 200, 0);
  CHECK(before_rts(rules, state, 0) == Advice::keep);
}

TEST_CASE(
    "Adaptation: an RTR that is used ends a stop; one that is late says that the receiver tries") {
  AdaptationRules rules;
  rules.min_sample_rtrs = 1;
  Adaptation state;
  feed(state, 1, 0);
  REQUIRE(before_rts(rules, state, 0) == Advice::stop);
  note_rtr_received(state, 0);  // was on its way
  CHECK_FALSE(state.probed);
  note_rtr_received(state, 1);
  CHECK(state.probed);
  CHECK(note_rtr_used(state));
  CHECK_FALSE(state.stopped);
  CHECK_FALSE(note_rtr_used(state));
}

TEST_CASE(
    "Probing: after three receives that stood there in time one probes; a use ends the stop "
    "(P1.15)") {
  Probing state;
  CHECK(state.may_offer());
  state.stop();
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(state.may_offer());
    state.rts_came(true, false);
  }
  CHECK(state.may_offer());
  state.offered();
  CHECK_FALSE(state.may_offer());  // one at a time
  CHECK(state.used());
  CHECK_FALSE(state.stopped);
}

TEST_CASE("Probing: late receives are no evidence, and a failed probe waits anew (P1.15)") {
  Probing state;
  state.stop();
  for (int i = 0; i < 100; ++i) state.rts_came(false, false);
  CHECK_FALSE(state.may_offer());
  int probes = 0;
  for (int i = 0; i < 100; ++i) {  // an exchange whose RTRs always cross
    const bool offers = state.may_offer();
    if (offers) state.offered();
    probes += offers ? 1 : 0;
    state.rts_came(true, offers);
  }
  CHECK(probes == 25);
}

TEST_CASE("Probing: each stop asks for more uses, until 64 in a row (P1.15)") {
  Probing state;
  for (const int needed : {1, 2, 4, 8, 8}) {
    state.stop();
    for (int i = 0; i < 3; ++i) state.rts_came(true, false);
    for (int i = 1; i <= needed; ++i) {
      CHECK(state.may_offer());
      state.offered();
      CHECK(state.used() == (i == needed));
    }
  }
  for (int i = 0; i < 64; ++i) CHECK_FALSE(state.used());
  CHECK(state.needed == 1);
}
