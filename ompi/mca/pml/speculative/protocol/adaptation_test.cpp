// Adaptation: when the speculation of an envelope stops, and when it is tried again.
#include "adaptation.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

void feed(Adaptation& state, int received, int used) {
  for (int i = 0; i < received; ++i) note_rtr_received(state);
  for (int i = 0; i < used; ++i) note_rtr_used(state);
}

}  // namespace

TEST_CASE("Adaptation: no judgement before the minimum sample (P1.11)") {
  const AdaptationRules rules;
  Adaptation state;
  feed(state, static_cast<int>(rules.min_sample_rtrs) - 1, 0);
  CHECK(before_rts(rules, state) == Advice::keep);
  note_rtr_received(state);
  CHECK(before_rts(rules, state) == Advice::stop);
}

TEST_CASE("Adaptation: at the threshold it goes on, below it stops (P1.11)") {
  const AdaptationRules rules;  // 80 %
  Adaptation at;
  feed(at, 20, 16);
  CHECK(before_rts(rules, at) == Advice::keep);
  Adaptation below;
  feed(below, 20, 15);
  CHECK(before_rts(rules, below) == Advice::stop);
  CHECK(below.stopped);
}

TEST_CASE("Adaptation: it resumes after the interval, with a clean record (P1.11)") {
  AdaptationRules rules;
  rules.resume_interval_rts = 5;
  Adaptation state;
  feed(state, 16, 0);
  REQUIRE(before_rts(rules, state) == Advice::stop);
  for (int i = 0; i < 4; ++i) CHECK(before_rts(rules, state) == Advice::keep);
  CHECK(before_rts(rules, state) == Advice::resume);
  CHECK_FALSE(state.stopped);
  CHECK(before_rts(rules, state) == Advice::keep);
}

TEST_CASE("Adaptation: old behaviour fades, a new pattern is noticed soon (P1.11)") {
  const AdaptationRules rules;
  Adaptation state;
  for (int i = 0; i < 100000; ++i) feed(state, 1, 1);
  CHECK(before_rts(rules, state) == Advice::keep);
  CHECK(state.received_rtrs <= 256);
  int unused = 0;
  while (before_rts(rules, state) == Advice::keep) {
    note_rtr_received(state);
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
  CHECK(before_rts(rules, state) == Advice::keep);
}
