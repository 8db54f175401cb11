// Rendezvous sends that have not started yet because an RTR for them is expected at any moment
// (P1.14).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "communicator.hpp"
#include "counters.hpp"
#include "patience.hpp"

namespace overlap::speculative {

/// The deferred sends of a process: at most one to each peer, because whatever follows it there
/// must come after it in the stream. What is taken out is for the caller to start.
class DeferredSends {
 public:
  /// @param rules  outlive the object, as do the counters
  DeferredSends(const PatienceRules& rules, Counters& counters)
      : rules_(rules), counters_(counters) {}

  [[nodiscard]] bool empty() const noexcept { return sends_.empty(); }
  /// Note the time. It is the caller's: the protocol reads no clock.
  void heard(std::uint64_t now_ns) noexcept { now_ns_ = now_ns; }
  /// Is an RTR worth a short wait? Then the send is kept until it is taken.
  [[nodiscard]] bool try_put(SendOp& op);
  /// @returns  a send whose time is over, or nullptr
  [[nodiscard]] SendOp* take_expired();
  /// @returns  the send to this peer, or nullptr
  [[nodiscard]] SendOp* take(const Peer& peer);
  /// An RTR of this envelope has come.
  /// @returns  the send that may use it, or nullptr
  [[nodiscard]] SendOp* take_met(const Peer& peer, SendEnvelope& envelope);

 private:
  template <class Wanted>
  [[nodiscard]] SendOp* take_first(Wanted&& wanted);
  void note_outcome(const SendOp& op) noexcept;

  const PatienceRules& rules_;
  Counters& counters_;
  std::vector<SendOp*> sends_;  ///< in order of starting
  std::uint64_t now_ns_ = 0;    ///< as last heard
};

}  // namespace overlap::speculative
