// What the parts of a barrier cost in the simulation.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::coll_mq::sim {

using Nanoseconds = std::int64_t;

/// Chosen so that 64 ranks on 8 nodes come near what the paper says in words (P6): 32 us with
/// writes with immediate to log2(n) peers, 54 us with sends and connections to all, and 80 % of the
/// barrier free for one block of work. All else follows.
struct Costs {
  Nanoseconds wire = 1600;      ///< adapter to adapter
  Nanoseconds task = 130;       ///< a wait or an enable in the management queue
  Nanoseconds send = 150;       ///< a message leaves its adapter
  Nanoseconds receive = 120;    ///< a message enters
  Nanoseconds entry = 150;      ///< it reads a receive entry and scatters; only sends do
  Nanoseconds miss = 175;       ///< the adapter must fetch a connection's context, either side
  std::int64_t contexts = 64;   ///< that an adapter keeps
  std::int32_t node_ranks = 8;  ///< ranks that share an adapter

  Nanoseconds post = 5800;       ///< to post a list: the caller's
  Nanoseconds post_task = 20;    ///< and each task of it
  Nanoseconds look = 150;        ///< one MPI_Test that finds nothing, one look at memory
  Nanoseconds call = 300;        ///< processor-driven: to start a barrier
  Nanoseconds give = 250;        ///< processor-driven: to send a message
  Nanoseconds poll_write = 100;  ///< processor-driven: to see a write in memory
  Nanoseconds poll_send = 450;   ///< processor-driven: to take a completion and post a receive
};

/// The caller has the list ready and rings one doorbell.
[[nodiscard]] inline Costs with_ready_lists(Costs costs = {}) {
  costs.post = 500;
  costs.post_task = 10;
  return costs;
}

}  // namespace overlap::coll_mq::sim
