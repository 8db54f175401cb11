// Every interleaving of small cases, both hazard policies, all kinds of transport; and the planted
// faults that must be noticed.
//
// OVERLAP_EXPLORE=long runs the complete sweeps (hours), long:3/16 the third of sixteen parts of
// them; the default takes a sample of the larger ones.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/explorer.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>

#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

constexpr HazardPolicy both_policies[] = {HazardPolicy::envelope_sequence,
                                          HazardPolicy::eager_flag};
constexpr Order all_orders[] = {Order::kept, Order::streams, Order::none};
constexpr Transport::Write all_writes[] = {
    Transport::Write::at_once,     Transport::Write::later,        Transport::Write::refused,
    Transport::Write::fails_later, Transport::Write::fails_midway, Transport::Write::none};
constexpr Transport::Chain both_chains[] = {Transport::Chain::at_once,
                                            Transport::Chain::after_stall};

// A sanitizer's build takes ten times as long, and looks for other faults: it takes fewer cases.
// There is one thread here, so for ThreadSanitizer the first case of each sweep will do. The factor
// is prime and greater than any dimension of the sweeps.
#if defined(__SANITIZE_THREAD__)
constexpr unsigned thinning = 4001;
#elif defined(__SANITIZE_ADDRESS__)
constexpr unsigned thinning = 17;
#else
constexpr unsigned thinning = 1;
#endif
/// Does a sample have enough cases to meet all that its sweep is about?
constexpr bool samples_cover = thinning == 1;

bool long_grade() {
  const char* grade = std::getenv("OVERLAP_EXPLORE");
  return grade != nullptr && std::strncmp(grade, "long", 4) == 0;
}

/// The cases of a sweep that run: all of them in the long grade, one in `every` by default, the
/// first always. `every` has no factor in common with any dimension of its sweep, so that the
/// sample meets every pair of values.
class Sample {
 public:
  explicit Sample(unsigned every) : every_(every * thinning), number_(every_ - 1) {
    const char* grade = std::getenv("OVERLAP_EXPLORE");
    unsigned part = 0;
    unsigned parts = 0;
    if (grade == nullptr || !long_grade()) return;
    every_ = 1;
    number_ = 0;
    if (std::sscanf(grade, "long:%u/%u", &part, &parts) != 2 || parts == 0) return;
    every_ = parts;
    number_ = part;
  }
  [[nodiscard]] bool takes() { return ++number_ % every_ == 0; }

 private:
  std::uint64_t every_;
  std::uint64_t number_;
};

/// Sums over the cases of one test, printed when it ends.
struct Tally {
  const char* what;
  std::uint64_t cases = 0;
  std::uint64_t states = 0;
  std::uint64_t ends = 0;
  std::uint64_t used = 0;
  std::uint64_t chained = 0;
  std::uint64_t breaks = 0;
  std::uint64_t stale = 0;
  std::set<std::pair<bool, Transport::Write>> transports;

  explicit Tally(const char* name) : what(name) {}
  ~Tally() {
    std::printf(
        "%s: %llu cases, %llu states, %llu end states, %llu RTRs used, %llu DONEs chained\n", what,
        static_cast<unsigned long long>(cases), static_cast<unsigned long long>(states),
        static_cast<unsigned long long>(ends), static_cast<unsigned long long>(used),
        static_cast<unsigned long long>(chained));
    std::fflush(stdout);
  }
  void must_hold(const Case& test) {
    const Verdict verdict = explore(test);
    ++cases;
    transports.insert({test.transport.reads, test.transport.write});
    states += verdict.states;
    ends += verdict.ends;
    used += verdict.counters[0].rtr_used + verdict.counters[1].rtr_used;
    chained += verdict.counters[0].done_chained + verdict.counters[1].done_chained;
    breaks += verdict.breaks;
    stale += verdict.counters[0].stale_dropped + verdict.counters[1].stale_dropped;
    if (verdict.holds()) return;
    FAIL_CHECK(describe(test) << "\n  " << verdict.violation << "\n " << verdict.story);
  }
};

using Calls = std::vector<Call>;

const Calls& kinds_of_send() {
  static const Calls kinds{eager(), synchronous(), rendezvous(), rendezvous(5, 6)};
  return kinds;
}
const Calls& kinds_of_receive() {
  // Exact prediction, oversized buffer (mispredicts an eager message), too small a buffer, predicts
  // eager, wildcards.
  static const Calls kinds{receive_large(5, 6), receive_large(5, 3), receive_small(),
                           receive_any_source(), receive_any_tag()};
  return kinds;
}

/// All programs of `length` calls out of `kinds`.
void for_each_program(const Calls& kinds, std::size_t length,
                      const std::function<void(const Program&)>& visit) {
  std::vector<std::size_t> digits(length, 0);
  Program program(length);
  while (true) {
    for (std::size_t i = 0; i < length; ++i) program[i] = kinds[digits[i]];
    visit(program);
    std::size_t at = 0;
    while (at < length && ++digits[at] == kinds.size()) digits[at++] = 0;
    if (at == length) return;
  }
}

Case make_case(HazardPolicy policy, Program sends, Program receives) {
  Case test;
  test.policy = policy;
  test.programs[0] = std::move(sends);
  test.programs[1] = std::move(receives);
  return test;
}

}  // namespace

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
  CHECK(tally.used > 0);
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
    "Explorer: both directions at once, one communicator that is not the first of its context") {
  Tally tally("both directions");
  Sample sample(1);
  for (const HazardPolicy policy : both_policies) {
    for (const Call& sent : kinds_of_send()) {
      for (const Call& received : kinds_of_receive()) {
        if (!sample.takes()) continue;
        Case test =
            make_case(policy, {receive_large(5, 6), sent, rendezvous()}, {received, rendezvous()});
        test.transport.write = Transport::Write::at_once;
        test.world = false;
        tally.must_hold(test);
      }
    }
  }
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

namespace {

/// `before`, then the communicator is freed and its context used again, then `after`.
Program reuse(Program before, const Program& after) {
  before.insert(before.end(), {free_communicator(), agree(), activate()});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

Case freed_case(HazardPolicy policy, Program sends, Program receives) {
  Case test = make_case(policy, std::move(sends), std::move(receives));
  test.world = false;
  return test;
}

}  // namespace

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
            tally.must_hold(test);
          }
        }
      }
    }
  }
}

// Planted faults ------------------------------------------------------------------------

namespace {

struct Planted {
  const char* name;
  Fault fault;
  HazardPolicy policy;
  Program sends;
  Program receives;
  Transport transport = {};
  bool world = true;
  bool room = true;
  Order order = Order::kept;
  unsigned communicators_before[2] = {};
};

}  // namespace

TEST_CASE("Explorer: planted faults are noticed") {
  constexpr auto by_number = HazardPolicy::envelope_sequence;
  constexpr auto by_flag = HazardPolicy::eager_flag;
  const Transport chained{.chain = Transport::Chain::at_once};
  const Transport at_once{.write = Transport::Write::at_once};
  const Transport fragments{.write = Transport::Write::none};
  const Transport chained_writes{.reads = false, .chain = Transport::Chain::at_once};
  const std::vector<Planted> faults{
      {"no RTR-ACK (P1.6)",
       Fault::no_rtr_ack,
       by_number,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"no RTR-ACK (P1.6), paper's policy",
       Fault::no_rtr_ack,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"no RTS-ACK (P1.6)",
       Fault::no_rts_ack,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"RTR behind a wildcard (P1.7)",
       Fault::rtr_behind_wildcard,
       by_number,
       {rendezvous(), rendezvous()},
       {receive_any_tag(), receive_large()}},
      {"RTR behind a wildcard (P1.7), paper's policy",
       Fault::rtr_behind_wildcard,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_any_tag(), receive_large()}},
      {"Eager-flag never set (P1.8)",
       Fault::eager_flag_never_set,
       by_flag,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"eager message not counted (P1.8)",
       Fault::eager_flag_never_set,
       by_number,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"stop-RTR lost (P1.8)",
       Fault::stop_rtr_lost,
       by_flag,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"REVOKE not awaited (P1.7)",
       Fault::revoke_not_awaited,
       by_number,
       {rendezvous()},
       {receive_large(), cancel(0)}},
      {"late RTR taken for a new one (P1.8)",
       Fault::late_rtr_taken_for_new,
       by_number,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"ghost dropped: message lost (P1.7)",
       Fault::ghost_dropped,
       by_number,
       {rendezvous()},
       {receive_large(), cancel(0), receive_large()},
       fragments},
      {"fragment into a cancelled buffer (P1.7)",
       Fault::fragment_to_cancelled,
       by_flag,
       {rendezvous()},
       {receive_large(), cancel(0), receive_large()},
       fragments},
      {"chained DONE before its write (P1.3)",
       Fault::chained_ahead,
       by_number,
       {rendezvous()},
       {receive_large()},
       chained_writes},
      {"chained DONE before its read (P1.2)",
       Fault::chained_ahead,
       by_flag,
       {rendezvous()},
       {receive_large()},
       chained},
      {"identity not checked: unbound stream", Fault::identity_not_checked, by_number,
       reuse({eager()}, {eager()}), reuse({}, {receive_small()}), at_once, false, true,
       Order::none},
      {"identity not checked: bound stream", Fault::identity_not_checked, by_number,
       reuse({eager(), eager()}, {eager(), eager()}),
       reuse({receive_small()}, {receive_small(), receive_small()}), at_once, false, true,
       Order::none},
      {"era not carried, receiver ahead",
       Fault::era_not_carried,
       by_number,
       reuse({}, {eager()}),
       reuse({}, {receive_small()}),
       at_once,
       false,
       true,
       Order::kept,
       {0, 3}},
      {"era not carried, sender ahead",
       Fault::era_not_carried,
       by_number,
       reuse({eager()}, {eager()}),
       reuse({}, {receive_small()}),
       at_once,
       false,
       true,
       Order::none,
       {3, 0}},
      {"no stream_end",
       Fault::no_stream_end,
       by_number,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false},
      {"stream_end ignored",
       Fault::stream_end_ignored,
       by_flag,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false},
      {"what waits for room dies with its communicator",
       Fault::queue_dies_with_communicator,
       by_number,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false,
       false},
  };
  for (const Planted& planted : faults) {
    CAPTURE(planted.name);
    Case test = make_case(planted.policy, planted.sends, planted.receives);
    test.transport = planted.transport;
    test.world = planted.world;
    test.room = planted.room;
    test.order = planted.order;
    std::copy_n(planted.communicators_before, 2, test.communicators_before);
    CHECK(explore(test).violation == "");
    test.fault = planted.fault;
    const Verdict verdict = explore(test);
    CHECK_FALSE(verdict.holds());
    std::printf("planted: %-48s -> %s\n", planted.name,
                verdict.holds() ? "NOT NOTICED" : verdict.violation.c_str());
  }
}
