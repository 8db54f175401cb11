// Failed requests that are handled later, in their order.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <optional>

#include "opal/fabric/fabric.hpp"

namespace overlap::ring {

/// Failures met while the last messages of a lost peer are taken. The upper layer ends the job for
/// a failed request, so it is told first why the peer is lost. The first failure of a queue pair
/// has the reason: they stay in order, also before those that are met afterwards.
///
/// @thread  Guard held
class DeferredFailures {
 public:
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
  void put(const fabric::Completion& failure) { all_.push_back(failure); }
  /// @returns  the oldest; nothing while failures are deferred
  [[nodiscard]] std::optional<fabric::Completion> take() {
    if (held() || all_.empty()) return std::nullopt;
    const fabric::Completion oldest = all_.front();
    all_.pop_front();
    return oldest;
  }

 private:
  unsigned holds_ = 0;
  std::deque<fabric::Completion> all_;
};

}  // namespace overlap::ring
