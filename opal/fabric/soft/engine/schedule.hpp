// The engine's clock and its two heaps of timers: what clients can see, and what they see later.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>

#include "timers.hpp"

namespace overlap::fabric::soft {

/// Virtual time. A visible timer is one whose effect a client can observe at once; the effect of a
/// hidden one (on the wire) shows one latency later, so nobody has to be woken for it earlier.
class Schedule {
 public:
  /// When the last thing happened.
  [[nodiscard]] Time now() const noexcept { return now_; }
  void catch_up(Time now) noexcept { now_ = std::max(now_, now); }

  void set_visible(Timer& timer, Time at) { visible_.set(timer, at); }
  void set_hidden(Timer& timer, Time at) { hidden_.set(timer, at); }
  [[nodiscard]] TimerHeap& hidden() noexcept { return hidden_; }

  /// Take the next timer that is due and move the clock to it. At equal times hidden ones come
  /// first: they are the cause. @returns  nullptr: none is due
  [[nodiscard]] Timer* take_due(Time until) {
    Timer* visible = visible_.first();
    Timer* hidden = hidden_.first();
    const bool cause = hidden != nullptr && (visible == nullptr || hidden->at <= visible->at);
    Timer* next = cause ? hidden : visible;
    if (next == nullptr || next->at > until) return nullptr;
    catch_up(next->at);
    TimerHeap::clear(*next);
    return next;
  }

  /// @returns  when a client can next observe something, at the earliest
  [[nodiscard]] Time next_visible(Time latency_min_ns) const noexcept {
    const Timer* visible = visible_.first();
    const Timer* hidden = hidden_.first();
    const Time seen = visible == nullptr ? never : visible->at;
    return hidden == nullptr ? seen : std::min(seen, hidden->at + latency_min_ns);
  }

 private:
  TimerHeap visible_;
  TimerHeap hidden_;
  Time now_ = 0;
};

}  // namespace overlap::fabric::soft
