// Counts groups of exchanges, and keeps what they have taken.
// SPDX-License-Identifier: BSD-3-Clause
#include "exchange_ways.hpp"

namespace overlap::speculative {

bool ExchangeWays::leads(Group& group, const ExchangeRun& run) noexcept {
  if (group.leader != &run && group.leader != nullptr && ++group.followers <= followers_max)
    return false;
  group.leader = &run;
  group.followers = 0;
  return true;
}

void ExchangeWays::begin(ExchangeRun& run, std::uint64_t bytes, std::uint64_t now_ns) noexcept {
  Group& group = group_of_[size_classes_.of(bytes)];
  const bool is_of_group = run.group != 0 && run.group == group.number;
  if (is_of_group && run.rounds > cold_rounds) ways_.took(group.way, bytes, now_ns - run.began_ns);
  if (leads(group, run)) {
    group.way = ways_.choose(bytes);
    if (group.has_ended) group.number = ++groups_;
    group.has_ended = ways_.ends_group();
  }
  run = {.began_ns = now_ns,
         .group = group.number,
         .rounds = run.group == group.number ? run.rounds + 1 : 1,
         .reads = group.way == CopyWay::read};
}

}  // namespace overlap::speculative
