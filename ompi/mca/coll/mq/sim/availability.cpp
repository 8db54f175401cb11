// How much of a barrier's time is free for the caller, measured as in the paper.
// SPDX-License-Identifier: BSD-3-Clause
#include "availability.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace overlap::coll_mq::sim {

namespace {

double percent(Nanoseconds part, Nanoseconds whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double free_for_block_pct(BarrierNetwork& network) {
  const Nanoseconds raw = network.run().all_done;
  Nanoseconds block = 0;
  Nanoseconds whole = raw;
  for (Nanoseconds step = raw; step > raw / 300 && step > 0; step /= 2) {
    const Nanoseconds with = network.run({{}, block + step, 0, 0}).all_done;
    if (with > raw + raw / 100) continue;
    block += step;
    whole = with;
  }
  return percent(block, whole);
}

double free_with_tests_pct(BarrierNetwork& network) {
  const Nanoseconds raw = network.run().all_done;
  double most = 0;
  for (Nanoseconds piece = 100; piece < 6000; piece += piece / 5) {
    const Result result = network.run({{}, 0, 0, piece});
    if (result.all_done <= raw + raw / 10)
      most = std::max(most, percent(result.free, result.all_done));
  }
  return most;
}

Nanoseconds delay_of_late_rank(BarrierNetwork& network, Rank ranks, Nanoseconds late) {
  Program program;
  program.entry.resize(static_cast<std::size_t>(ranks));
  program.entry[static_cast<std::size_t>(ranks) / 2] = late;
  // The late one has less to do: all would end together.
  program.block_end = 2 * network.run().all_done + late;
  return network.run(program).all_done - program.block_end;
}

}  // namespace overlap::coll_mq::sim
