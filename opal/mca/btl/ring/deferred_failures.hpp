// Failed requests that are handled later: when it is known why their peer is lost.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>

#include "opal/fabric/fabric.hpp"

namespace overlap::ring {

/// Failures of requests until they are handled. The upper layer ends the job for a failed request,
/// so it is told first why the peer is lost:
///   - nothing is handled while the last messages of a lost peer are taken (Hold);
///   - a request that was flushed for a reason that nobody has heard waits for the event that has
///     it, `longest` at most. Progress goes on meanwhile, and the failures of other peers are
///     handled.
/// The first failure of a queue pair has the reason: those of one peer stay in order otherwise.
///
/// @thread  Guard held
class DeferredFailures {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr auto longest = std::chrono::seconds(1);

  /// While one exists failures are deferred; they nest.
  class Hold {
   public:
    explicit Hold(DeferredFailures& failures) noexcept : failures_(failures) { ++failures_.holds_; }
    ~Hold() { --failures_.holds_; }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    DeferredFailures& failures_;
  };

  [[nodiscard]] bool held() const noexcept { return holds_ > 0; }
  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  void put(const fabric::Completion& failure, Time now) { all_.push_back({failure, now}); }
  /// @param awaits_reason  awaits_reason(failure) -> bool; alike for all flushed ones of a peer
  /// @returns  the oldest that may be handled
  template <class AwaitsReason>
  [[nodiscard]] std::optional<fabric::Completion> take(Time now, AwaitsReason&& awaits_reason) {
    if (held()) return std::nullopt;
    const auto oldest = std::find_if(all_.begin(), all_.end(), [&](const Entry& entry) {
      return now - entry.since > longest || !awaits_reason(entry.failure);
    });
    if (oldest == all_.end()) return std::nullopt;
    const fabric::Completion failure = oldest->failure;
    all_.erase(oldest);
    return failure;
  }

 private:
  struct Entry {
    fabric::Completion failure;
    Time since;
  };
  unsigned holds_ = 0;
  std::deque<Entry> all_;
};

}  // namespace overlap::ring
