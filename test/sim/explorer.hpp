// Run two processes of the real protocol code through every interleaving of a small case. For tests
// only.
//
// Stateless model checking: a path is a list of choices, replayed from the start; the search is
// depth first. A process is deterministic, so its state is the list of the inputs it has had
// (calls, messages, ends of transfers); two paths that have given both processes the same inputs in
// the same order have reached the same state, and the second one is cut. That makes orders of
// independent steps at different processes count once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "process.hpp"

namespace overlap::speculative::sim {

/// One call of a process's program.
struct Call {
  enum class What : std::uint8_t {
    send,
    receive,
    cancel,
    wait,  ///< for a receive: it has been completed or cancelled
    improbe,
    free,      ///< the communicator; waits until nothing is open in it
    agree,     ///< on the next communicator with the same context
    activate,  ///< it; waits until the other process has agreed, as every later call does
    stop,      ///< this process calls MPI no more
  };
  What what = What::send;
  int tag = 5;
  std::size_t bytes = 0;  ///< message, or capacity of the buffer
  SendMode mode = SendMode::eager;
  int from = 0;  ///< receive, improbe: source
  bool speculate = false;
  int which = 0;  ///< cancel, wait: of this process's posted receives, in order
};

[[nodiscard]] Call eager(int tag = 5);
[[nodiscard]] Call synchronous(int tag = 5);
[[nodiscard]] Call rendezvous_sync(int tag = 5);
/// Could go eagerly, and does not.
[[nodiscard]] Call eager_sized(int tag = 5);
[[nodiscard]] Call rendezvous(int tag = 5, std::size_t bytes = 4);
/// Predicts rendezvous: sends an RTR where the rules allow it.
[[nodiscard]] Call receive_large(int tag = 5, std::size_t bytes = 4);
/// Predicts eager.
[[nodiscard]] Call receive_small(int tag = 5, std::size_t bytes = 2);
[[nodiscard]] Call receive_any_source(int tag = 5);
[[nodiscard]] Call receive_any_tag();
[[nodiscard]] Call cancel(int which);
[[nodiscard]] Call wait(int which);
[[nodiscard]] Call improbe(int tag = 5);
[[nodiscard]] Call free_communicator();
[[nodiscard]] Call agree();
[[nodiscard]] Call activate();
[[nodiscard]] Call stop();

using Program = std::vector<Call>;

/// How far the network keeps the order of what one process sends to the other.
enum class Order : std::uint8_t {
  kept,     ///< one queue per direction
  streams,  ///< forward, reverse and targeted messages each in order; they overtake each other
  none,     ///< anything overtakes anything
};

struct Case {
  Program programs[2];
  HazardPolicy policy = HazardPolicy::envelope_sequence;
  Transport transport;
  Order order = Order::kept;
  Fault fault = Fault::none;
  Config config;                          ///< hazard_policy is overwritten by `policy`
  bool world = true;                      ///< the communicator is MPI_COMM_WORLD
  unsigned communicators_before[2] = {};  ///< that each process has made alone, before a common one
  bool room = true;                       ///< false: every message waits before it leaves
  unsigned reposts = 0;  ///< so many receives are posted anew by the completion of one
};

struct Verdict {
  std::string violation;  ///< empty: holds
  std::string story;      ///< the choices that led to the violation
  std::uint64_t states = 0;
  std::uint64_t steps = 0;   ///< executed, replays included
  std::uint64_t ends = 0;    ///< end states reached
  std::uint64_t breaks = 0;  ///< and ends of the job by Action::Kind::break_off
  Counters counters[2];      ///< sums over all end states

  [[nodiscard]] bool holds() const noexcept { return violation.empty(); }
};

/// @param states_max  give up there; 0: never
[[nodiscard]] Verdict explore(const Case& test, std::uint64_t states_max = 0);
[[nodiscard]] std::string describe(const Case& test);

}  // namespace overlap::speculative::sim
