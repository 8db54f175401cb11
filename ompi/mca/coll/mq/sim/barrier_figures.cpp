// Prints as JSON what the simulation says of the paper's figures 3 to 7, and of many ranks.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "availability.hpp"

namespace {

using namespace overlap::coll_mq;
using namespace overlap::coll_mq::sim;

struct Line {
  const char* name;
  Drive drive;
  Flavour flavour;
  bool is_dense;
  Algorithm algorithm = Algorithm::doubling;
  bool has_ready_list = false;
};

constexpr Line small[] = {
    {"MQ-RDMA sparse", Drive::adapter, Flavour::write_immediate, false},
    {"MQ-RDMA dense", Drive::adapter, Flavour::write_immediate, true},
    {"MQ-send sparse", Drive::adapter, Flavour::send_receive, false},
    {"MQ-send dense", Drive::adapter, Flavour::send_receive, true},
    {"PTP-RDMA", Drive::processor, Flavour::write_immediate, false},
    {"PTP-send/recv", Drive::processor, Flavour::send_receive, false},
};
constexpr Line large[] = {
    {"queue", Drive::adapter, Flavour::write_immediate, false},
    {"queue, list ready", Drive::adapter, Flavour::write_immediate, false, Algorithm::doubling,
     true},
    {"queue, list ready, sends", Drive::adapter, Flavour::send_receive, false, Algorithm::doubling,
     true},
    {"queue, list ready, dense", Drive::adapter, Flavour::write_immediate, true,
     Algorithm::doubling, true},
    {"processor", Drive::processor, Flavour::write_immediate, false},
    {"processor, dissemination", Drive::processor, Flavour::write_immediate, false,
     Algorithm::dissemination},
    {"processor, tree", Drive::processor, Flavour::write_immediate, false, Algorithm::tree},
};

/// @param is_small  few ranks: there is time for more
void print(const Line& line, Rank ranks, bool is_small, bool& first) {
  Setup setup{ranks, line.drive, line.flavour, line.algorithm, line.is_dense, {}};
  if (line.has_ready_list) setup.costs = with_ready_lists();
  BarrierNetwork network(setup);
  const Result raw = network.run();
  std::printf("%s\n  {\"line\": \"%s\", \"ranks\": %d, \"latency_us\": %.2f, \"block_pct\": %.1f, ",
              first ? "" : ",", line.name, ranks, static_cast<double>(raw.all_done) / 1000,
              free_for_block_pct(network));
  if (is_small) std::printf("\"tests_pct\": %.1f, ", free_with_tests_pct(network));
  std::printf("\"connections\": %zu, \"memory_kib\": %.1f, \"late_delay_us\": %.2f}",
              raw.connections_most, static_cast<double>(raw.memory_most_bytes) / 1024,
              static_cast<double>(delay_of_late_rank(network, ranks, 100'000)) / 1000);
  std::fflush(stdout);
  first = false;
}

}  // namespace

/// @param argv[1]  the most ranks, 65536 if it is not given
int main(int argc, char** argv) {
  const Rank most = argc > 1 ? std::atoi(argv[1]) : 65536;
  try {
    std::printf("{\"small\": [");
    bool first = true;
    for (const Rank ranks : {2, 4, 8, 16, 32, 64})
      for (const Line& line : small) print(line, ranks, true, first);
    std::printf("],\n\"large\": [");
    first = true;
    for (const Rank ranks : {64, 512, 4096, 65536})
      for (const Line& line : large)
        if (ranks <= most) print(line, ranks, false, first);
    std::printf("]}\n");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "barrier_figures: %s\n", error.what());
    return 1;
  }
  return 0;
}
