// Every interleaving of small cases in which receives are cancelled and communicators freed.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/sweep.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE("Explorer: a receive is cancelled at any moment (P1.6, P1.7)") {
  Tally tally("cancel");
  Sample sample(7);
  const std::vector<Program> receives{
      {receive_large(), cancel(0)},
      {receive_large(), receive_large(), cancel(0)},
      {receive_large(), receive_large(), cancel(1)},
      {receive_large(), cancel(0), receive_large()},
      {receive_large(), receive_large(), cancel(0), cancel(1)},
      {receive_any_tag(), receive_large(), cancel(0)},
      {receive_large(), receive_any_source(), cancel(0)},
      {receive_large(), receive_large(), cancel(0), receive_large()},
  };
  for (const HazardPolicy policy : both_policies) {
    for (const Order order : all_orders) {
      for (const Transport::Write write : all_writes) {
        for (const Program& received : receives) {
          for_each_program({eager(), rendezvous()}, 2, [&](const Program& sends) {
            const bool taken = sample.takes();
            const bool disordered = !long_grade() && order == Order::none;
            if (disordered ? received.size() > 2 || !(samples_cover || taken) : !taken) return;
            Case test = make_case(policy, sends, received);
            test.order = order;
            test.transport.write = write;
            tally.must_hold(test);
          });
        }
      }
    }
  }
}

TEST_CASE(
    "Explorer: a receive is cancelled and waited for while the sender makes no more calls; what "
    "uses its RTR reaches the next receive (P1.7)") {
  Tally tally("cancel and wait");
  Sample sample(17);
  const std::vector<Program> alone{
      {receive_large(), cancel(0), wait(0)},
      {receive_large(), receive_large(), cancel(1), wait(1), cancel(0), wait(0)},
      {receive_large(), receive_large(), cancel(0), wait(0), cancel(1), wait(1)},
      {receive_large(), receive_any_tag(), cancel(0), wait(0), cancel(1), wait(1)},
  };
  const std::vector<Program> received{
      {receive_large(), cancel(0), wait(0), receive_large(), receive_large()},
      {receive_large(), cancel(0), wait(0), improbe(), receive_large(), receive_large()},
      {receive_large(), receive_large(), cancel(0), wait(0), receive_large()},
      {receive_large(), receive_large(), cancel(0), receive_any_tag()},
      {receive_large(5, 6), receive_large(5, 3), cancel(0), receive_small()},
      {receive_large(), receive_large(), receive_large(), cancel(1), receive_large()},
      {receive_large(), receive_large(), receive_large(), cancel(0), cancel(1)},
  };
  for (const HazardPolicy policy : both_policies) {
    for (const Order order : all_orders) {
      for (const bool reads : {true, false}) {
        const auto run = [&](Program sends, Program receives) {
          if (!sample.takes()) return;
          Case test = make_case(policy, std::move(sends), std::move(receives));
          test.order = order;
          test.transport = {reads, Transport::Write::none, order == Order::kept ? 2U : 6U};
          tally.must_hold(test);
        };
        for (const Program& program : alone) {
          run({stop()}, program);
          run({eager(6), stop()}, program);
        }
        for (const Program& program : received) {
          if (order != Order::kept && program.size() > 4 && !long_grade()) continue;
          for_each_program({eager(), rendezvous_sync(), rendezvous(), rendezvous(5, 6)}, 2,
                           [&](const Program& sends) { run(sends, program); });
        }
      }
    }
  }
  if (samples_cover) CHECK(tally.used > 0);
}

TEST_CASE(
    "Explorer: a communicator is freed and its context used again, with messages of the old one in "
    "flight (P1.7)") {
  Tally tally("freed and used again");
  Sample sample(7);  // the sweep has dimensions of 2 and 3
  const std::vector<Program> before_sends{{eager()}, {eager(), eager()}, {}};
  const std::vector<Program> before_receives{
      {}, {receive_small()}, {receive_large(), receive_large(), cancel(1)}};
  const std::vector<Program> after_sends{{eager()}, {rendezvous()}};
  for (const HazardPolicy policy : both_policies) {
    for (const Order order : all_orders) {
      for (const Program& early : before_sends) {
        for (const Program& received : before_receives) {
          for (const Program& late : after_sends) {
            for (unsigned ahead = 0; ahead < 3; ++ahead) {
              // What was not sent cannot be waited for before the communicator is freed.
              if (early.empty() && !received.empty()) continue;
              const bool large = order == Order::none && early.size() > 1;
              if (!sample.takes() || (large && !long_grade())) continue;
              Case test =
                  freed_case(policy, reuse(early, late), reuse(received, {receive_large()}));
              test.order = order;
              test.transport.write = Transport::Write::at_once;
              if (ahead != 0) test.communicators_before[ahead - 1] = 3;
              tally.must_hold(test);
            }
          }
        }
      }
    }
  }
  if (samples_cover) CHECK(tally.stale > 0);
}

TEST_CASE("Explorer: the sender frees the communicator and calls MPI no more (P1.7)") {
  Tally tally("freed and gone");
  Sample sample(1);
  const std::vector<Program> receives{
      {receive_large(), receive_large(), cancel(1), free_communicator()},
      {receive_small(), receive_large(), cancel(1), free_communicator()},
      {receive_large(), receive_large(), receive_large(), cancel(2), cancel(1),
       free_communicator()},
      {receive_large(), receive_any_tag(), receive_large(), cancel(1), cancel(2)},
  };
  for (const HazardPolicy policy : both_policies) {
    for (const Order order : all_orders) {
      for (const bool room : {true, false}) {
        for (const Program& received : receives) {
          if (!sample.takes()) continue;
          Case test = freed_case(policy, {eager(), free_communicator(), stop()}, received);
          test.order = order;
          test.room = room;
          tally.must_hold(test);
        }
      }
    }
  }
}
