// How calls that block wait: they progress, and nap where others need the processor.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <algorithm>
#include <chrono>

#include "ompi/mca/common/overlap/completion_queue.hpp"
#include "ompi/mca/common/overlap/entry.hpp"
#include "ompi/mca/common/overlap/progress_driver.hpp"
#include "ompi/mca/common/overlap/protocol/idle_naps.hpp"

namespace overlap {

/// Naps of a thread in calls that wait. Both wrap.
struct Naps {
  std::uint32_t count = 0;
  /// That they have lasted: several times as long as asked for, if short. What a nap lasts longer
  /// than that, others have had the processor.
  std::uint64_t ns = 0;
};
/// Of the calling thread. One for all components: each would have its own inline variable.
[[nodiscard]] Naps& own_naps() noexcept;

/// Naps between turns, where others need the processor of a call that waits: other ranks, or
/// threads of this process that compute while several of its threads wait.
class Waiting {
 public:
  explicit Waiting(ProgressDriver& driver) noexcept : driver_(driver) { driver.set_stay(true); }
  ~Waiting() {
    driver_.set_stay(false);
    if (is_first_) driver_.first_waiting().store(nullptr, std::memory_order_relaxed);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;
  void end_turn() noexcept {
    if (opal_using_threads() && is_beside_other())
      nap(beside_other_.end_turn());
    else if (opal_progress_yield_when_idle)
      nap(naps_.end_turn(driver_.events()));
  }

 private:
  /// Does another thread poll without pause? A callback of this one may wait, too.
  [[nodiscard]] bool is_beside_other() noexcept {
    const void* const self = LinuxPlatform::self();
    const void* first = nullptr;
    if (driver_.first_waiting().compare_exchange_strong(first, self, std::memory_order_relaxed))
      is_first_ = true;
    return first != nullptr && first != self;
  }
  static void nap(std::uint32_t nap_ns) noexcept {
    if (nap_ns == 0) return;
    const auto begin = std::chrono::steady_clock::now();
    const timespec nap{0, static_cast<long>(nap_ns)};
    nanosleep(&nap, nullptr);
    Naps& naps = own_naps();
    ++naps.count;
    constexpr std::uint32_t timer_slack_ns = 100'000;  // Linux's, and the change to the idle task
    const std::chrono::nanoseconds lasted = std::chrono::steady_clock::now() - begin;
    naps.ns += std::min(static_cast<std::uint64_t>(lasted.count()),
                        std::uint64_t{nap_ns} + timer_slack_ns);
  }

  ProgressDriver& driver_;
  IdleNaps naps_;
  NapsBesideOther beside_other_;
  bool is_first_ = false;
};

/// Poll once, and complete what has ended. @thread  MPI thread, progress lock NOT held
inline void take_turn(ProgressDriver& driver, CompletionQueue& completions) {
  bool ended = false;
  {
    const Entry entry;
    driver.poll();
    ended = !completions.empty();
  }
  if (ended) [[unlikely]]
    completions.drain();
}

/// Progress until done(). @thread  MPI thread, progress lock NOT held; done() is called without it
template <class Done>
void poll_until(ProgressDriver& driver, CompletionQueue& completions, Done&& done) {
  // BTLs are polled so often for each turn of opal_progress, which does much that a blocked call
  // does not wait for.
  constexpr int polls_per_turn = 8;
  Waiting waiting(driver);
  while (!done()) {
    for (int i = 0; i < polls_per_turn && !done(); ++i) take_turn(driver, completions);
    if (done()) return;
    opal_progress();
    if (!done()) waiting.end_turn();
  }
}

}  // namespace overlap
