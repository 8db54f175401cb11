// Sweeps over the cases of the explorer: which cases there are, which of them run, and their sums.
//
// OVERLAP_EXPLORE=long runs the complete sweeps (hours), long:3/16 the third of sixteen parts of
// them; the default takes a sample of the larger ones.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "test/sim/explorer.hpp"
#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

namespace overlap::speculative::sim {

inline constexpr Order all_orders[] = {Order::kept, Order::streams, Order::none};
inline constexpr Transport::Write all_writes[] = {
    Transport::Write::at_once,     Transport::Write::later,        Transport::Write::refused,
    Transport::Write::fails_later, Transport::Write::fails_midway, Transport::Write::none};
inline constexpr Transport::Chain both_chains[] = {Transport::Chain::at_once,
                                                   Transport::Chain::after_stall};

/// Does a sample have enough cases to meet all that its sweep is about?
inline constexpr bool samples_cover = thinning == 1;

inline bool long_grade() {
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
  std::uint64_t copied = 0;
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
    copied += verdict.counters[0].unexpected_copied + verdict.counters[1].unexpected_copied;
    chained += verdict.counters[0].done_chained + verdict.counters[1].done_chained;
    breaks += verdict.breaks;
    stale += verdict.counters[0].stale_dropped + verdict.counters[1].stale_dropped;
    if (verdict.holds()) return;
    FAIL_CHECK(describe(test) << "\n  " << verdict.violation << "\n " << verdict.story);
  }
};

using Calls = std::vector<Call>;

inline const Calls& kinds_of_send() {
  static const Calls kinds{eager(), synchronous(), rendezvous(), rendezvous(5, 6)};
  return kinds;
}
inline const Calls& kinds_of_receive() {
  // Exact prediction, oversized buffer (mispredicts an eager message), too small a buffer, predicts
  // eager, wildcards.
  static const Calls kinds{receive_large(5, 6), receive_large(5, 3), receive_small(),
                           receive_any_source(), receive_any_tag()};
  return kinds;
}

/// All programs of `length` calls out of `kinds`.
inline void for_each_program(const Calls& kinds, std::size_t length,
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

inline Case make_case(HazardPolicy policy, Program sends, Program receives) {
  Case test;
  test.policy = policy;
  test.programs[0] = std::move(sends);
  test.programs[1] = std::move(receives);
  return test;
}

/// `before`, then the communicator is freed and its context used again, then `after`.
inline Program reuse(Program before, const Program& after) {
  before.insert(before.end(), {free_communicator(), agree(), activate()});
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

inline Case freed_case(HazardPolicy policy, Program sends, Program receives) {
  Case test = make_case(policy, std::move(sends), std::move(receives));
  test.world = false;
  return test;
}

}  // namespace overlap::speculative::sim
