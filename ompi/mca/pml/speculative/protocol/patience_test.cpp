// When a send waits for an RTR, and how long.
// SPDX-License-Identifier: BSD-3-Clause
#include "patience.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("Patience: nobody waits before RTRs have crossed, nor when it is switched off (P1.14)") {
  PatienceRules rules;
  Patience state;
  CHECK(state.wait_ns(rules, 1 << 20) == 0);
  state.crossed();
  CHECK(state.wait_ns(rules, 1 << 20) == 0);
  state.crossed();
  CHECK(state.wait_ns(rules, 1 << 20) == rules.wait_max_ns);
  rules.enabled = false;
  CHECK(state.wait_ns(rules, 1 << 20) == 0);
  rules.enabled = true;
  CHECK(state.wait_ns(rules, 1 << 20) != 0);
}

TEST_CASE("Patience: a wait is as long as was learnt, and never longer than its message (P1.14)") {
  const PatienceRules rules;
  Patience state;
  state.crossed();
  state.crossed();
  CHECK(state.wait_ns(rules, 1000) == 1000);
  state.came(4000);
  CHECK(state.wait_ns(rules, 1 << 20) == 8000);
  CHECK(state.wait_ns(rules, 5000) == 5000);
  CHECK(state.wait_ns(rules, 3000) == 0);  // it would not come in time
  for (int i = 0; i < 50; ++i) state.came(40000);
  CHECK(state.wait_ns(rules, 1 << 20) == rules.wait_max_ns);
}

TEST_CASE("Patience: waits in vain become rare (P1.14)") {
  const PatienceRules rules;
  Patience state;
  int waits = 0;
  for (int i = 0; i < 1000; ++i) {
    if (state.wait_ns(rules, 1 << 20) != 0) {
      ++waits;
      state.in_vain(rules);
    }
    state.crossed();
  }
  CHECK(waits == 8);  // after 2, 4, 8, ... crossings
}
