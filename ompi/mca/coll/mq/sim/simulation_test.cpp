// Barriers in virtual time: the orders that the paper and the plans promise.
// SPDX-License-Identifier: BSD-3-Clause
#include <cmath>
#include <vector>

#include "ompi/mca/coll/mq/sim/availability.hpp"
#include "test/support/catch.hpp"
#include "test/support/thinning.hpp"

namespace {

using namespace overlap::coll_mq;
using namespace overlap::coll_mq::sim;

Setup queue(Rank ranks) { return {.ranks = ranks}; }
Setup processor(Rank ranks) { return {.ranks = ranks, .drive = Drive::processor}; }

Nanoseconds time_of(const Setup& setup) { return BarrierNetwork(setup).run().all_done; }
/// Not Approx, which has two names in Catch2.
double differs_pct(Nanoseconds seen, Nanoseconds expected) {
  return 100 * std::abs(static_cast<double>(seen - expected)) / static_cast<double>(expected);
}
double block_pct(const Setup& setup) {
  BarrierNetwork network(setup);
  return free_for_block_pct(network);
}

TEST_CASE("nobody is done before the last has come") {
  for (const auto algorithm : {Algorithm::doubling, Algorithm::dissemination, Algorithm::tree}) {
    for (const auto drive : {Drive::adapter, Drive::processor}) {
      for (const Rank ranks : {2, 3, 7, 16, 33}) {
        Setup setup{.ranks = ranks, .drive = drive, .algorithm = algorithm};
        BarrierNetwork network(setup);
        for (Rank late = 0; late < ranks; ++late) {
          Program program;
          program.entry.resize(static_cast<std::size_t>(ranks));
          program.entry[static_cast<std::size_t>(late)] = 1'000'000;
          const Result result = network.run(program);
          REQUIRE(result.first_done > 1'000'000);
          REQUIRE(result.all_done < 1'000'000 + 2 * network.run().all_done);
        }
      }
    }
  }
}

TEST_CASE("64 ranks on 8 nodes come near what the paper says") {
  Setup dense_sends = queue(64);
  dense_sends.flavour = Flavour::send_receive;
  dense_sends.is_dense = true;
  CHECK(differs_pct(time_of(queue(64)), 32'000) <= 5);
  CHECK(differs_pct(time_of(dense_sends), 54'000) <= 5);
  // The processor's own barrier is the faster one there.
  CHECK(time_of(processor(64)) < time_of(queue(64)));
  CHECK(block_pct(queue(64)) >= 80);
  CHECK(block_pct(processor(64)) <= 30);
}

TEST_CASE("what is free for a block of work grows with the ranks") {
  double before = 0;
  for (Rank ranks = 2; ranks <= Rank{4096 / overlap::thinning}; ranks *= 2) {
    const double now = block_pct(queue(ranks));
    CHECK(now > before);
    before = now;
  }
}

TEST_CASE("each of the paper's two changes makes 64 ranks faster") {
  for (const bool is_dense : {false, true}) {
    Setup writes = queue(64);
    writes.is_dense = is_dense;
    Setup sends = writes;
    sends.flavour = Flavour::send_receive;
    CHECK(time_of(writes) < time_of(sends));
  }
  Setup dense = queue(64);
  dense.is_dense = true;
  CHECK(time_of(queue(64)) < time_of(dense));
}

TEST_CASE("65,536 ranks need few connections and leave the processor free") {
  Setup setup = queue(overlap::thinning == 1 ? 65536 : 4096);
  setup.costs = with_ready_lists();
  BarrierNetwork network(setup);
  const Result raw = network.run();
  CHECK(raw.connections_most <= 17);
  CHECK(raw.memory_most_bytes <= 64 * 1024);
  const Nanoseconds block = raw.all_done * 98 / 100;
  const Result computing = network.run({{}, block, 0, 0});
  CHECK(computing.all_done == raw.all_done);
  CHECK(computing.free == block);
}

TEST_CASE("a rank that is late behind work costs the others nothing with a queue") {
  for (const Nanoseconds late : {0, 10'000, 1'000'000}) {
    BarrierNetwork with_queue(queue(64));
    BarrierNetwork without(processor(64));
    CHECK(delay_of_late_rank(with_queue, 64, late) == Costs{}.look);
    CHECK(delay_of_late_rank(without, 64, late) > 5 * Costs{}.wire);
  }
}

}  // namespace
