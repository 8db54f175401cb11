// Every interleaving of small cases in which DONE is chained behind its data.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/sweep.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE("Explorer: DONE chained behind the data, every 2 sends x 2 receives (P1.2, P1.3)") {
  Tally tally("chained 2 x 2");
  Sample sample(37);
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 2, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        Case test = make_case(policy, sends, receives);
        for (const Transport::Chain chain : both_chains) {
          for (const bool reads : {true, false}) {
            for (const Order order : all_orders) {
              if (!sample.takes()) continue;
              test.order = order;
              test.transport = {reads, Transport::Write::later, 4, chain};
              tally.must_hold(test);
            }
          }
        }
      });
    });
  }
  if (samples_cover) CHECK(tally.chained > 0);
  CHECK(tally.breaks == 0);
}

TEST_CASE(
    "Explorer: DONE chained behind the data, 3 sends x 3 receives, cancels, both directions (P1.2, "
    "P1.3, P1.6, P1.7)") {
  Tally tally("chained 3 x 3");
  Sample sample(61);
  Sample each(1);
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Chain chain : both_chains) {
      const auto run = [&](Program sends, Program receives, Order order) {
        Case test = make_case(policy, std::move(sends), std::move(receives));
        test.order = order;
        test.transport = {true, Transport::Write::later, 4, chain};
        tally.must_hold(test);
      };
      for_each_program({eager(), rendezvous()}, 3, [&](const Program& sends) {
        for_each_program({receive_large(5, 6), receive_small(), receive_any_tag()}, 3,
                         [&](const Program& receives) {
                           // Each chained transfer has four steps that others fall between: three
                           // of them take minutes.
                           const bool large =
                               sends[0].mode == sends[1].mode && sends[1].mode == sends[2].mode;
                           if (!long_grade() && large) return;
                           if (!sample.takes()) return;
                           run(sends, receives, Order::kept);
                         });
      });
      for (const Order order : all_orders) {
        if (!long_grade() && order != Order::kept) continue;
        if (each.takes()) run({rendezvous(), rendezvous()}, {receive_large(), cancel(0)}, order);
        if (each.takes())
          run({eager(), rendezvous()}, {receive_large(), cancel(0), receive_large()}, order);
        if (each.takes())
          run({rendezvous(), rendezvous()}, {receive_large(), receive_large(), cancel(0)}, order);
        if (each.takes())
          run({receive_large(), rendezvous()}, {receive_large(), rendezvous()}, order);
        if (each.takes())
          run({rendezvous(5, 0), rendezvous()}, {improbe(), receive_large()}, order);
      }
    }
  }
  if (samples_cover) CHECK(tally.chained > 0);
}

TEST_CASE(
    "Explorer: a write that fails with DONE behind it ends the job, and nothing has completed by "
    "it (P1.3)") {
  Tally tally("chained and failing");
  Sample sample(1);
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Chain chain : both_chains) {
      for (const bool reads : {true, false}) {
        if (!sample.takes()) continue;
        Case test = make_case(policy, {rendezvous(), eager(), rendezvous()},
                              {receive_large(), receive_large(), receive_large()});
        test.transport = {reads, Transport::Write::fails_later, 4, chain};
        tally.must_hold(test);
      }
    }
  }
  if (samples_cover) CHECK(tally.breaks > 0);
}
