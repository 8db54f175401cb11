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

/// The time of an exchange ends where the next one begins, of whatever size.
void ExchangeWays::note_end(const ExchangeRun& run, std::uint64_t now_ns) noexcept {
  const Group& group = group_of(run.bytes);
  if (run.tells && run.group == group.number)
    ways_.took(group.way, run.bytes, now_ns - run.began_ns);
}

void ExchangeWays::begin_round(Group& group, const Exchange& exchange) noexcept {
  const bool goes_on =
      group.number != 0 && (group.rounds < group_rounds || group.messages < group_messages);
  if (!goes_on) {
    group.way = ways_.choose(exchange.bytes);
    group.number = ++groups_;
    group.rounds = group.messages = 0;
  }
  group.is_warm = group.rounds >= cold_rounds && group.messages >= cold_messages;
  ++group.rounds;
  group.messages += exchange.messages;
}

bool ExchangeWays::begin(ExchangeRun& run, const Exchange& exchange) noexcept {
  const bool owned = run.owner == nullptr || run.owner == exchange.owner;
  Group& group = group_of(exchange.bytes);
  // Of a size that is never timed one goes the way of those that are.
  if (!owned && ++run.others <= others_max)
    return group.number != 0 ? group.way == CopyWay::read : run.reads;
  if (owned) note_end(run, exchange.now_ns);
  if (leads(group, run)) begin_round(group, exchange);
  run = {.owner = exchange.owner,
         .group = group.number,
         .began_ns = exchange.now_ns,
         .bytes = exchange.bytes,
         .tells = group.is_warm,
         .reads = group.way == CopyWay::read};
  return run.reads;
}

}  // namespace overlap::speculative
