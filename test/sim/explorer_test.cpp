// Every interleaving of small cases, both hazard policies, all kinds of transport.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/sweep.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE(
    "Explorer: every 2 sends x 2 receives, every transport, every order of the network (P1.2, "
    "P1.3, P1.6 to P1.10)") {
  Tally tally("2 x 2");
  Sample sample(61);
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 2, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        Case test = make_case(policy, sends, receives);
        for (const bool reads : {true, false}) {
          for (const Transport::Write write : all_writes) {
            test.transport = {reads, write, 4};
            for (const Order order : all_orders) {
              test.order = order;
              if (!sample.takes()) continue;
              tally.must_hold(test);
            }
          }
        }
      });
    });
  }
}

TEST_CASE("Explorer: every 3 sends x 3 receives of one envelope (P1.6 to P1.10)") {
  Tally tally("3 x 3");
  Sample sample(3307);
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 3, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 3, [&](const Program& receives) {
        Case test = make_case(policy, sends, receives);
        for (const bool reads : {true, false}) {
          for (const Transport::Write write : all_writes) {
            if (!sample.takes()) continue;
            test.transport = {reads, write, 4};
            tally.must_hold(test);
          }
        }
      });
    });
  }
  if (samples_cover) CHECK(tally.transports.size() == 2 * std::size(all_writes));
}

TEST_CASE("Explorer: 4 sends x 4 receives of one envelope (P1.6 to P1.10)") {
  Tally tally("4 x 4");
  const std::vector<Program> sends{
      {eager(), eager(), rendezvous(), rendezvous()},
      {rendezvous(), eager(), rendezvous(), eager()},
      {synchronous(), rendezvous(5, 6), eager(), rendezvous()},
      {eager(), rendezvous(), rendezvous(), rendezvous()},
      {rendezvous(), rendezvous(), rendezvous(), rendezvous()},
  };
  const std::vector<Program> receives{
      {receive_large(5, 6), receive_large(5, 3), receive_small(), receive_large(5, 6)},
      {receive_large(), receive_any_tag(), receive_large(), receive_large()},
      {receive_large(), receive_large(), receive_large(), receive_large()},
  };
  Sample sample(7);
  for (const Program& sent : sends) {
    for (const Program& received : receives) {
      for (const HazardPolicy policy : both_policies) {
        Case test = make_case(policy, sent, received);
        test.transport.write = Transport::Write::at_once;
        if (long_grade()) {
          for (const Transport::Write write : all_writes) {
            test.transport = {write != Transport::Write::refused, write, 6};
            tally.must_hold(test);
          }
        } else if (sample.takes()) {
          tally.must_hold(test);
        }
      }
    }
  }
}

TEST_CASE("Explorer: matched probes take messages out of order") {
  Tally tally("matched probe");
  Sample sample(1);
  const std::vector<Program> receives{
      {improbe(), receive_large()},
      {receive_large(), improbe(), receive_large()},
      {receive_large(6), improbe(), receive_large()},
      {improbe(), improbe(), receive_large()},
  };
  for (const HazardPolicy policy : both_policies) {
    for (const Order order : all_orders) {
      for (const Program& received : receives) {
        for_each_program({eager(), synchronous(), rendezvous()}, 2, [&](const Program& sends) {
          if (!sample.takes()) return;
          Case test = make_case(policy, sends, received);
          test.order = order;
          tally.must_hold(test);
        });
      }
    }
  }
}

TEST_CASE("Explorer: two tags, so that messages of one envelope pass those of another") {
  Tally tally("two tags");
  Sample sample(41);
  for (const HazardPolicy policy : both_policies) {
    for_each_program({eager(5), rendezvous(5), rendezvous(6)}, 3, [&](const Program& sends) {
      for_each_program({receive_large(5), receive_large(6), receive_any_tag()}, 3,
                       [&](const Program& receives) {
                         if (!sample.takes()) return;
                         Case test = make_case(policy, sends, receives);
                         test.transport.write = Transport::Write::at_once;
                         tally.must_hold(test);
                       });
    });
  }
}

TEST_CASE(
    "Explorer: both directions at once, a communicator that is the first of its context and one "
    "that is not") {
  Tally tally("both directions");
  Sample sample(1);
  for (const bool world : {true, false}) {
    for (const HazardPolicy policy : both_policies) {
      for (const Call& sent : kinds_of_send()) {
        for (const Call& received : kinds_of_receive()) {
          if (!sample.takes()) continue;
          Case test = make_case(policy, {receive_large(5, 6), sent, rendezvous()},
                                {received, rendezvous()});
          test.transport.write = Transport::Write::at_once;
          test.world = world;
          tally.must_hold(test);
        }
      }
    }
  }
  if (samples_cover) CHECK(tally.used > 0);
}

TEST_CASE(
    "Explorer: the sender stops and resumes, the receiver mutes itself, the envelopes are "
    "forgotten (P1.8, P1.9, P1.11)") {
  Tally tally("adaptation");
  Sample sample(5);
  for (const HazardPolicy policy : both_policies) {
    for_each_program({eager(5), rendezvous(5), rendezvous(6)}, 3, [&](const Program& sends) {
      for (const std::size_t envelopes_max : {std::size_t{1}, std::size_t{1024}}) {
        for (const bool small_ahead : {false, true}) {
          if (!sample.takes()) continue;
          Case test = make_case(policy, sends,
                                {small_ahead ? receive_large(6) : receive_large(5),
                                 receive_large(5), receive_large(5)});
          test.config.mispredictions_max = 1;
          test.config.adaptation.min_sample_rtrs = 1;
          test.config.adaptation.resume_interval_rts = 1;
          test.config.envelopes.envelopes_max = envelopes_max;
          test.transport.write = Transport::Write::at_once;
          tally.must_hold(test);
        }
      }
    });
  }
}

TEST_CASE("Explorer: empty messages by rendezvous (P1.10)") {
  Tally tally("empty");
  Sample sample(1);
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Write write : all_writes) {
      for (const bool reads : {true, false}) {
        if (!sample.takes()) continue;
        Case test = make_case(policy, {rendezvous(5, 0), rendezvous(5, 4), rendezvous(5, 0)},
                              {receive_large(), receive_large(), receive_large(5, 0)});
        test.transport = {reads, write, 4};
        tally.must_hold(test);
      }
    }
  }
}

TEST_CASE("Explorer: no room, so that every message leaves later than its call") {
  Tally tally("no room");
  Sample sample(37);
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 2, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        for (const Transport::Write write : all_writes) {
          if (!sample.takes()) continue;
          Case test = make_case(policy, sends, receives);
          test.room = false;
          test.transport.write = write;
          tally.must_hold(test);
        }
      });
    });
    Case test = freed_case(policy, reuse({eager()}, {eager()}), reuse({}, {receive_large()}));
    test.room = false;
    test.transport.write = Transport::Write::at_once;
    tally.must_hold(test);
  }
}

TEST_CASE("Explorer: a completion posts the next receive from inside (P1.7)") {
  Tally tally("re-entrant");
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Write write : all_writes) {
      for_each_program({eager(), rendezvous()}, 3, [&](const Program& sends) {
        Case test = make_case(policy, sends, {receive_large()});
        test.reposts = 2;
        test.transport.write = write;
        tally.must_hold(test);
      });
    }
  }
}

TEST_CASE("Explorer: some buffers cannot be registered, some writes fail in the middle (P1.10)") {
  Tally tally("registration");
  Sample sample(1);
  for (const HazardPolicy policy : both_policies) {
    for (const unsigned every : {2U, 3U}) {
      for (const bool reads : {true, false}) {
        for (const Transport::Write write :
             {Transport::Write::at_once, Transport::Write::later, Transport::Write::fails_midway}) {
          for (const Program& sends : {Program{rendezvous(), eager(), rendezvous()},
                                       Program{rendezvous(), rendezvous()}}) {
            Case test =
                make_case(policy, sends, {receive_large(), receive_large(5, 6), receive_large()});
            test.transport = {reads, write, 2};
            test.transport.registers_every = every;
            if (sample.takes()) tally.must_hold(test);
          }
        }
      }
    }
  }
}
