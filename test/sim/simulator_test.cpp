// Random programs of many processes against the reference matcher, and the overlap of the four
// cases as exact numbers.
//
// OVERLAP_SIMULATE=<seeds> sets the number of random programs (default 400; a sanitizer's build
// takes fewer).
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/simulator.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

Step compute(std::uint64_t ns) {
  Step step;
  step.ns = ns;
  return step;
}
Step send(int peer, std::size_t bytes, SendMode mode, int tag = 5) {
  Step step;
  step.what = Step::What::send;
  step.peer = peer;
  step.tag = tag;
  step.bytes = bytes;
  step.mode = mode;
  return step;
}
Step receive(int peer, std::size_t bytes, bool speculate, int tag = 5) {
  Step step;
  step.what = Step::What::receive;
  step.peer = peer;
  step.tag = tag;
  step.bytes = bytes;
  step.speculate = speculate;
  return step;
}
Step wait_for(Step::What what, int which = 0) {
  Step step;
  step.what = what;
  step.which = which;
  return step;
}

constexpr std::size_t eager_limit_bytes = 64;

/// A random program: every step is nonblocking, so that whatever is left open can be wound up.
std::vector<Step> random_program(std::mt19937_64& random, int self, int ranks) {
  const auto below = [&random](std::uint64_t n) { return random() % n; };
  const bool one_envelope = below(3) == 0;
  std::vector<Step> program;
  const std::uint64_t steps = 20 + below(60);
  int receives = 0;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const int peer = one_envelope ? (self + 1) % ranks
                                  : static_cast<int>(below(static_cast<std::uint64_t>(ranks)));
    const int tag = one_envelope ? 1 : static_cast<int>(below(3));
    const std::size_t size = below(3) == 0 ? below(eager_limit_bytes + 1) : below(1000);
    switch (below(17)) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4: {
        const SendMode mode = size > eager_limit_bytes ? SendMode::rendezvous
                              : below(4) == 0          ? SendMode::eager_sync
                              : below(6) == 0          ? SendMode::rendezvous
                              : below(4) == 0          ? SendMode::eager_sized
                              : below(9) == 0          ? SendMode::eager_sized_sync
                                                       : SendMode::eager;
        program.push_back(send(peer, size, mode, tag));
        break;
      }
      case 5:
      case 6:
      case 7:
      case 8:
      case 9:
      case 10: {
        const int source = one_envelope    ? (self + ranks - 1) % ranks
                           : below(8) == 0 ? any_source
                                           : peer;
        const std::size_t capacity = below(6) == 0 ? size : 1000;
        program.push_back(receive(source, capacity, capacity > eager_limit_bytes,
                                  below(10) == 0 ? any_tag : tag));
        ++receives;
        break;
      }
      case 11: {
        Step step = wait_for(
            Step::What::cancel,
            receives == 0 ? 0 : static_cast<int>(below(static_cast<std::uint64_t>(receives))));
        program.push_back(step);
        break;
      }
      case 12: {
        Step step =
            receive(below(2) == 0 ? any_source : peer, 1000, false, below(2) == 0 ? any_tag : tag);
        constexpr std::array kinds{Step::What::improbe, Step::What::hold, Step::What::iprobe};
        step.what = kinds[below(kinds.size())];
        program.push_back(step);
        break;
      }
      case 13:
      case 14: {
        Step step = compute(below(8000));
        step.what = Step::What::linger;
        program.push_back(step);
        break;
      }
      case 15: program.push_back(wait_for(Step::What::receive_held)); break;
      default: program.push_back(compute(below(8000)));
    }
  }
  return program;
}

struct Sums {
  std::uint64_t rtr_sent = 0;
  std::uint64_t rtr_used = 0;
  std::uint64_t rts_sent = 0;
  std::uint64_t messages = 0;
  std::uint64_t sends = 0;
  std::uint64_t chained = 0;
  std::uint64_t copied = 0;
};

void simulate(std::uint64_t seed, HazardPolicy policy, Sums& sums) {
  std::mt19937_64 random(seed);
  const int ranks = 2 + static_cast<int>(random() % 15);
  Fabric fabric;
  fabric.seed = seed;
  fabric.jitter_max_ns = random() % 2 == 0 ? 0 : 5000;
  Config config;
  config.hazard_policy = policy;
  config.mispredictions_max = 1 + static_cast<std::uint32_t>(random() % 4);
  config.adaptation.enabled = random() % 2 == 0;
  config.adaptation.min_sample_rtrs = 4;
  config.adaptation.resume_interval_rts = 4;
  config.envelopes.envelopes_max = random() % 3 == 0 ? 2 : 1024;
  Transport transport;
  transport.reads = random() % 3 != 0;
  transport.write = static_cast<Transport::Write>(random() % 6);
  transport.fragment_bytes = 256;
  transport.copies_every = transport.reads ? seed % 3 : 0;
  transport.chain = static_cast<Transport::Chain>(random() % 3);
  // Such a failure would end the job.
  const bool fails = transport.write == Transport::Write::fails_later ||
                     transport.write == Transport::Write::fails_midway;
  if (transport.chain != Transport::Chain::none && fails) transport.write = Transport::Write::later;
  Simulator simulator(ranks, fabric, config, transport, random() % 2 == 0);
  std::vector<std::vector<Step>> programs;
  for (int rank = 0; rank < ranks; ++rank) programs.push_back(random_program(random, rank, ranks));
  simulator.run(std::move(programs));
  simulator.wind_up();
  for (int rank = 0; rank < ranks; ++rank) {
    const Counters& counters = simulator.process(rank).counters();
    sums.rtr_sent += counters.rtr_sent;
    sums.rtr_used += counters.rtr_used;
    sums.rts_sent += counters.rts_sent;
    sums.chained += counters.done_chained;
    sums.copied += counters.unexpected_copied;
    sums.sends += simulator.process(rank).sends().size();
  }
  sums.messages += simulator.messages();
}

// Overlap -------------------------------------------------------------------------------

struct Measured {
  double overlap_pct;
  double transfer_us;
};

/// One message. The measured side computes between its nonblocking call and its wait, the other
/// side waits at once.
///
/// @returns  share of the time from the later of the two calls to the end that the computation
/// hides
Measured measure(bool speculative, bool receiver_early, bool at_receiver, std::size_t bytes) {
  constexpr std::uint64_t head_start_ns = 50000;
  const auto elapsed = [&](std::uint64_t compute_ns) {
    Config config;
    config.speculation = speculative;
    Simulator simulator(2, Fabric{}, config, Transport{true, Transport::Write::later, 65536},
                        speculative);
    std::vector<Step> sender;
    std::vector<Step> receiver;
    (receiver_early ? sender : receiver).push_back(compute(head_start_ns));
    sender.push_back(send(1, bytes, SendMode::rendezvous));
    receiver.push_back(receive(0, bytes, true));
    if (compute_ns != 0) (at_receiver ? receiver : sender).push_back(compute(compute_ns));
    sender.push_back(wait_for(Step::What::wait_send));
    receiver.push_back(wait_for(Step::What::wait_receive));
    simulator.run({sender, receiver});
    return at_receiver ? simulator.process(1).receives()[0].completed_ns
                       : simulator.process(0).sends()[0].completed_ns;
  };
  const std::uint64_t transfer_ns = elapsed(0) - head_start_ns;
  // The computation ends long after the transfer could have ended.
  const bool measured_early = at_receiver == receiver_early;
  const std::uint64_t compute_ns = 2 * transfer_ns + (measured_early ? head_start_ns : 0);
  const std::uint64_t compute_end_ns = (measured_early ? 0 : head_start_ns) + compute_ns;
  const double left_ns =
      static_cast<double>(elapsed(compute_ns)) - static_cast<double>(compute_end_ns);
  const double hidden = 1.0 - left_ns / static_cast<double>(transfer_ns);
  return {100.0 * std::max(0.0, hidden), static_cast<double>(transfer_ns) / 1000.0};
}

}  // namespace

TEST_CASE(
    "Simulator: random programs of 2 to 16 processes end as MPI says, with nothing left over (P1.1 "
    "to P1.12, Field)") {
  const char* wanted = std::getenv("OVERLAP_SIMULATE");
  const std::uint64_t seeds =
      wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 400 / overlap::thinning;
  for (const HazardPolicy policy : {HazardPolicy::envelope_sequence, HazardPolicy::eager_flag}) {
    Sums sums;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      try {
        simulate(seed, policy, sums);
      } catch (const Violation& violation) {
        FAIL_CHECK("seed " << seed << ", policy " << static_cast<int>(policy) << ": "
                           << violation.what());
      }
    }
    std::printf(
        "%s: %llu programs, %llu sends, %llu messages, RTRs %llu sent, %llu used, %llu RTSs\n",
        policy == HazardPolicy::eager_flag ? "eager_flag" : "envelope_sequence",
        static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(sums.sends),
        static_cast<unsigned long long>(sums.messages),
        static_cast<unsigned long long>(sums.rtr_sent),
        static_cast<unsigned long long>(sums.rtr_used),
        static_cast<unsigned long long>(sums.rts_sent));
    CHECK(sums.rtr_used > 0);
    CHECK(sums.chained > 0);
    // The paper's policy acknowledges the matches of RTSs: none is copied before its match.
    CHECK((sums.copied > 0) == (policy == HazardPolicy::envelope_sequence));
  }
}

namespace {

struct Exchanged {
  std::uint64_t sends = 0;
  std::uint64_t used = 0;
  std::uint64_t awaited = 0;
};

/// Both processes irecv, isend, compute and wait for both, again and again. One of them computes
/// longer by up to skew_max_ns, in turns or always the same one.
Exchanged exchange(std::size_t bytes, std::uint64_t skew_max_ns, bool in_turns) {
  constexpr int rounds = overlap::thinning == 1 ? 400 : 100;
  Simulator simulator(2, Fabric{}, Config{}, Transport{}, true, true);
  std::vector<std::vector<Step>> programs(2);
  std::mt19937 random(7);
  for (int i = 0; i < rounds; ++i) {
    const std::uint64_t skew_ns = skew_max_ns / 2 + random() % (skew_max_ns / 2);
    const std::size_t late = in_turns ? random() % 2 : 0;
    for (std::size_t rank = 0; rank < 2; ++rank) {
      std::vector<Step>& program = programs[rank];
      program.push_back(compute(5000000 + (rank == late ? skew_ns : 0)));
      const int peer = 1 - static_cast<int>(rank);
      program.push_back(receive(peer, bytes, true));
      program.push_back(send(peer, bytes, SendMode::rendezvous));
      program.push_back(compute(5000000));
      for (const auto what : {Step::What::wait_send, Step::What::wait_receive}) {
        program.push_back(wait_for(what));
        program.back().which = i;
      }
    }
  }
  simulator.run(std::move(programs));
  Exchanged sum;
  for (int rank = 0; rank < 2; ++rank) {
    const Counters& counters = simulator.process(rank).counters();
    sum.sends += rounds;
    sum.used += counters.rtr_used;
    sum.awaited += counters.rtr_awaited;
  }
  return sum;
}

}  // namespace

TEST_CASE("Simulator: in a symmetric exchange nearly all messages use an RTR (P1.14)") {
  for (const std::size_t bytes : {std::size_t{64} << 10U, std::size_t{1} << 20U}) {
    for (const bool in_turns : {true, false}) {
      const Exchanged sum = exchange(bytes, 20000, in_turns);
      CAPTURE(bytes, in_turns, sum.sends, sum.used, sum.awaited);
      CHECK(sum.used * 100 >= sum.sends * 95);
    }
  }
}

TEST_CASE("Simulator: waits for RTRs of a receiver that is always far behind become rare (P1.14)") {
  const Exchanged sum = exchange(std::size_t{1} << 20U, 2000000, false);
  CAPTURE(sum.sends, sum.used, sum.awaited);
  CHECK(sum.awaited <= 12);
}

TEST_CASE("Simulator: the same seed gives the same run") {
  Sums one;
  Sums two;
  simulate(77, HazardPolicy::envelope_sequence, one);
  simulate(77, HazardPolicy::envelope_sequence, two);
  CHECK(one.messages == two.messages);
  CHECK(one.rtr_used == two.rtr_used);
}

TEST_CASE(
    "Simulator: with DONE chained the side that waits ends with the data, while the side that "
    "moves it computes (P1.2, P1.3)") {
  constexpr std::size_t bytes = std::size_t{1} << 20U;
  constexpr std::uint64_t head_start_ns = 50000;
  constexpr std::uint64_t compute_ns = 10000000;  // the transfer takes about 840 us
  for (const bool receiver_early : {true, false}) {
    // The mover computes after its nonblocking call; the other side is in MPI from its call on.
    const auto end_of_waiting = [&](Transport::Chain chain, std::uint64_t mover_computes_ns) {
      Simulator simulator(2, Fabric{}, Config{},
                          Transport{true, Transport::Write::later, 65536, chain}, true);
      std::vector<Step> sender;
      std::vector<Step> receiver;
      std::vector<Step>& mover = receiver_early ? sender : receiver;
      mover.push_back(compute(head_start_ns));
      sender.push_back(send(1, bytes, SendMode::rendezvous));
      receiver.push_back(receive(0, bytes, true));
      if (mover_computes_ns != 0) mover.push_back(compute(mover_computes_ns));
      sender.push_back(wait_for(Step::What::wait_send));
      receiver.push_back(wait_for(Step::What::wait_receive));
      simulator.run({sender, receiver});
      CHECK(simulator.process(receiver_early ? 0 : 1).counters().done_chained ==
            (chain == Transport::Chain::none ? 0 : 1));
      return receiver_early ? simulator.process(1).receives()[0].completed_ns
                            : simulator.process(0).sends()[0].completed_ns;
    };
    const std::uint64_t transfer_end_ns = end_of_waiting(Transport::Chain::none, 0);
    CHECK(end_of_waiting(Transport::Chain::none, compute_ns) > compute_ns);
    CHECK(end_of_waiting(Transport::Chain::at_once, compute_ns) <= transfer_end_ns);
  }
}

TEST_CASE(
    "Simulator: overlap of the four cases, stock rendezvous and speculative (P1.2, P1.3, P1.4, "
    "P1.13)") {
  std::printf("overlap in %% of the transfer        receiver early           sender early\n");
  std::printf("bytes                            at receiver  at sender  at receiver  at sender\n");
  for (const std::size_t bytes :
       {std::size_t{32} << 10U, std::size_t{128} << 10U, std::size_t{512} << 10U,
        std::size_t{1} << 20U, std::size_t{4} << 20U}) {
    Measured cells[2][4];
    for (const bool speculative : {false, true}) {
      int column = 0;
      std::printf("%-11s %8zu KiB       ", speculative ? "speculative" : "stock", bytes >> 10U);
      for (const bool receiver_early : {true, false}) {
        for (const bool at_receiver : {true, false}) {
          Measured& cell = cells[speculative ? 1 : 0][column++];
          cell = measure(speculative, receiver_early, at_receiver, bytes);
          std::printf("%13.2f", cell.overlap_pct);
        }
      }
      std::printf("\n");
    }
    CAPTURE(bytes);
    if (bytes < (std::size_t{128} << 10U)) continue;
    CHECK(cells[0][0].overlap_pct < 5.0);   // receiver early, at the receiver: nothing today
    CHECK(cells[1][0].overlap_pct > 95.0);  // ... and nearly everything with an RTR (P1.3)
    CHECK(cells[1][1].overlap_pct > 95.0);
    CHECK(cells[0][2].overlap_pct <
          5.0);  // sender early, at the receiver: the early progress call finds the RTS (P1.4)
    CHECK(cells[1][2].overlap_pct > 95.0);
    CHECK(cells[1][3].overlap_pct > 95.0);
    CHECK(cells[1][1].overlap_pct >= cells[0][1].overlap_pct - 1.0);  // the sender loses nothing
    CHECK(cells[1][3].overlap_pct >= cells[0][3].overlap_pct - 1.0);
  }
}
