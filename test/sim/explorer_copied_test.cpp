// Every interleaving of small cases with messages that are announced and could have gone eagerly.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/sweep.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE("Explorer: eager-sized messages among others, every transport and order") {
  Tally tally("eager-sized");
  const std::vector<Program> sends{
      {eager_sized(), eager_sized()},          {eager(), eager_sized()},
      {rendezvous(), eager_sized()},           {eager_sized(), rendezvous()},
      {synchronous(), eager_sized(), eager()},
  };
  Sample sample(41);
  for (const HazardPolicy policy : both_policies) {
    for (const Program& sent : sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        Case test = make_case(policy, sent, receives);
        for (const unsigned copies_every : {0U, 1U, 2U}) {
          for (const Transport::Write write : all_writes) {
            test.transport = {copies_every != 0, write, 4};
            test.transport.copies_every = copies_every;
            for (const Order order : all_orders) {
              test.order = order;
              if (!sample.takes()) continue;
              tally.must_hold(test);
            }
          }
        }
      });
    }
  }
  CHECK(tally.copied > 0);
}
