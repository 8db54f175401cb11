// Every interleaving of small cases, both hazard policies, all kinds of transport; and the planted faults that must be noticed.
//
// OVERLAP_EXPLORE=long runs the complete sweeps (minutes); the default takes a sample of the larger ones.
#include "test/sim/explorer.hpp"

#include <cstdlib>
#include <cstring>
#include <functional>

#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

constexpr HazardPolicy both_policies[] = {HazardPolicy::envelope_sequence,
                                          HazardPolicy::eager_flag};
constexpr Order all_orders[] = {Order::kept, Order::streams, Order::none};
constexpr Transport::Write all_writes[] = {Transport::Write::at_once, Transport::Write::later,
                                           Transport::Write::refused, Transport::Write::fails_later,
                                           Transport::Write::none};
constexpr Transport::Chain both_chains[] = {Transport::Chain::at_once,
                                            Transport::Chain::after_stall};

// A sanitizer's build takes ten times as long, and looks for other faults: it takes fewer cases.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr unsigned thinning = 7;
#else
constexpr unsigned thinning = 1;
#endif

/// Is this one of the cases that the default grade takes, one in `every`?
bool chosen(std::uint64_t number, unsigned every) { return number % (every * thinning) == 0; }

bool long_grade() {
  const char* grade = std::getenv("OVERLAP_EXPLORE");
  return grade != nullptr && std::strcmp(grade, "long") == 0;
}

/// Sums over the cases of one test, printed when it ends.
struct Tally {
  const char* what;
  std::uint64_t cases = 0;
  std::uint64_t states = 0;
  std::uint64_t ends = 0;
  std::uint64_t used = 0;
  std::uint64_t chained = 0;
  std::uint64_t breaks = 0;

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
    states += verdict.states;
    ends += verdict.ends;
    used += verdict.counters[0].rtr_used + verdict.counters[1].rtr_used;
    chained += verdict.counters[0].done_chained + verdict.counters[1].done_chained;
    breaks += verdict.breaks;
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
  // Exact prediction, oversized buffer (mispredicts an eager message), too small a buffer, predicts eager, wildcards.
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
  std::uint64_t number = 0;
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 2, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        Case test = make_case(policy, sends, receives);
        for (const bool reads : {true, false}) {
          for (const Transport::Write write : all_writes) {
            test.transport = {reads, write, 4};
            for (const Order order : all_orders) {
              test.order = order;
              // 61 has no factor in common with any of the dimensions: the sample meets every pair of values.
              if (!long_grade() && !chosen(++number, 61)) continue;
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
  std::uint64_t number = 0;
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 3, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 3, [&](const Program& receives) {
        if (!long_grade() && !chosen(++number, 131)) return;
        Case test = make_case(policy, sends, receives);
        test.transport = {number % 3 != 0, all_writes[number % 5], 4};
        tally.must_hold(test);
      });
    });
  }
}

TEST_CASE("Explorer: 4 sends x 4 receives of one envelope (P1.6 to P1.10)") {
  Tally tally("4 x 4");
  const std::vector<Program> sends{
      {rendezvous(), rendezvous(), rendezvous(), rendezvous()},
      {eager(), rendezvous(), rendezvous(), rendezvous()},
      {rendezvous(), eager(), rendezvous(), eager()},
      {eager(), eager(), rendezvous(), rendezvous()},
      {synchronous(), rendezvous(5, 6), eager(), rendezvous()},
  };
  const std::vector<Program> receives{
      {receive_large(), receive_large(), receive_large(), receive_large()},
      {receive_large(), receive_any_tag(), receive_large(), receive_large()},
      {receive_large(5, 6), receive_large(5, 3), receive_small(), receive_large(5, 6)},
  };
  std::size_t number = 0;
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
        } else if (++number % 7 == 0) {
          tally.must_hold(test);
        }
      }
    }
  }
}

TEST_CASE("Explorer: a receive is cancelled at any moment (P1.6, P1.7)") {
  Tally tally("cancel");
  std::uint64_t number = 0;
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
            if (!long_grade() &&
                (order == Order::none ? received.size() > 2 : !chosen(++number, 7)))
              return;
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

TEST_CASE("Explorer: matched probes take messages out of order") {
  Tally tally("matched probe");
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
  std::uint64_t number = 0;
  for (const HazardPolicy policy : both_policies) {
    for_each_program({eager(5), rendezvous(5), rendezvous(6)}, 3, [&](const Program& sends) {
      for_each_program({receive_large(5), receive_large(6), receive_any_tag()}, 3,
                       [&](const Program& receives) {
                         if (!long_grade() && !chosen(++number, 41)) return;
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
  for (const HazardPolicy policy : both_policies) {
    for (const Call& sent : kinds_of_send()) {
      for (const Call& received : kinds_of_receive()) {
        Case test =
            make_case(policy, {receive_large(5, 6), sent, rendezvous()}, {received, rendezvous()});
        test.transport.write = Transport::Write::at_once;
        test.incarnation = 9;
        tally.must_hold(test);
      }
    }
  }
}

TEST_CASE(
    "Explorer: the sender stops and resumes, the receiver mutes itself, the envelopes are "
    "forgotten (P1.8, P1.9, P1.11)") {
  Tally tally("adaptation");
  std::uint64_t number = 0;
  for (const HazardPolicy policy : both_policies) {
    for_each_program({eager(5), rendezvous(5), rendezvous(6)}, 3, [&](const Program& sends) {
      for (const std::size_t envelopes_max : {std::size_t{1}, std::size_t{1024}}) {
        for (const bool small_ahead : {false, true}) {
          if (!long_grade() && !chosen(++number, 5)) continue;
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
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Write write : all_writes) {
      for (const bool reads : {true, false}) {
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
  std::uint64_t number = 0;
  for (const HazardPolicy policy : both_policies) {
    for_each_program(kinds_of_send(), 2, [&](const Program& sends) {
      for_each_program(kinds_of_receive(), 2, [&](const Program& receives) {
        Case test = make_case(policy, sends, receives);
        for (const Transport::Chain chain : both_chains) {
          for (const bool reads : {true, false}) {
            for (const Order order : all_orders) {
              if (!long_grade() && !chosen(++number, 37)) continue;
              test.order = order;
              test.transport = {reads, Transport::Write::later, 4, chain};
              tally.must_hold(test);
            }
          }
        }
      });
    });
  }
  CHECK(tally.chained > 0);
  CHECK(tally.breaks == 0);
}

TEST_CASE(
    "Explorer: DONE chained behind the data, 3 sends x 3 receives, cancels, both directions (P1.2, "
    "P1.3, P1.6, P1.7)") {
  Tally tally("chained 3 x 3");
  std::uint64_t number = 0;
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
                           // Each chained transfer has four steps that others fall between: three of them take minutes.
                           const bool large =
                               sends[0].mode == sends[1].mode && sends[1].mode == sends[2].mode;
                           if (!long_grade() && (large || !chosen(++number, 61))) return;
                           run(sends, receives, Order::kept);
                         });
      });
      for (const Order order : all_orders) {
        if (!long_grade() && order != Order::kept) continue;
        run({rendezvous(), rendezvous()}, {receive_large(), cancel(0)}, order);
        run({eager(), rendezvous()}, {receive_large(), cancel(0), receive_large()}, order);
        run({rendezvous(), rendezvous()}, {receive_large(), receive_large(), cancel(0)}, order);
        run({receive_large(), rendezvous()}, {receive_large(), rendezvous()}, order);
        run({rendezvous(5, 0), rendezvous()}, {improbe(), receive_large()}, order);
      }
    }
  }
  CHECK(tally.chained > 0);
}

TEST_CASE(
    "Explorer: a write that fails with DONE behind it ends the job, and nothing has completed by "
    "it (P1.3)") {
  Tally tally("chained and failing");
  for (const HazardPolicy policy : both_policies) {
    for (const Transport::Chain chain : both_chains) {
      for (const bool reads : {true, false}) {
        Case test = make_case(policy, {rendezvous(), eager(), rendezvous()},
                              {receive_large(), receive_large(), receive_large()});
        test.transport = {reads, Transport::Write::fails_later, 4, chain};
        tally.must_hold(test);
      }
    }
  }
  CHECK(tally.breaks > 0);
}

// Planted faults -------------------------------------------------------------------------------------------------------------

namespace {

struct Planted {
  const char* name;
  Fault fault;
  HazardPolicy policy;
  Program sends;
  Program receives;
  Transport transport = {};
};

}  // namespace

TEST_CASE("Explorer: planted faults are noticed") {
  constexpr auto by_number = HazardPolicy::envelope_sequence;
  constexpr auto by_flag = HazardPolicy::eager_flag;
  const Transport chained{.chain = Transport::Chain::at_once};
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
  };
  for (const Planted& planted : faults) {
    CAPTURE(planted.name);
    Case test = make_case(planted.policy, planted.sends, planted.receives);
    test.transport = planted.transport;
    CHECK(explore(test).violation == "");
    test.fault = planted.fault;
    const Verdict verdict = explore(test);
    CHECK_FALSE(verdict.holds());
    std::printf("planted: %-45s -> %s\n", planted.name,
                verdict.holds() ? "NOT NOTICED" : verdict.violation.c_str());
  }
}
