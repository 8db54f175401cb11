// Do other processes use the processor of the MPI thread, too?
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <time.h>

#include <atomic>
#include <cstdint>
#include <optional>

#include "opal/mca/common/overlap/node/run_delay.hpp"

namespace overlap {

/// There each wake of the interrupt thread takes the processor from the MPI thread for a time
/// slice: whoever waits longest for it comes next. So it sleeps longer where it wakes in vain.
class Crowd {
 public:
  /// @param mpi_thread  whose processor it is
  void open(int mpi_thread) noexcept {
    if (delay_.open(mpi_thread)) last_ = sample();
  }
  /// Has the MPI thread had to wait for more than an eighth of the time since the last look, but
  /// for the caller's own turns? Once in look_interval_ns; the last answer in between.
  /// @thread  interrupt thread
  [[nodiscard]] bool look() noexcept {
    if (!last_ || clock_ns(CLOCK_MONOTONIC) - last_->now_ns < look_interval_ns) return is_known();
    const std::optional<Sample> now = sample();
    if (!now) return is_known();
    const std::uint64_t waited_ns = now->delay_ns - last_->delay_ns;
    const std::uint64_t own_ns = now->own_ns - last_->own_ns;
    const std::uint64_t passed_ns = now->now_ns - last_->now_ns;
    known_.store(waited_ns > own_ns + passed_ns / 8, std::memory_order_relaxed);
    last_ = now;
    return is_known();
  }
  /// What the last look has found. @thread  any
  [[nodiscard]] bool is_known() const noexcept { return known_.load(std::memory_order_relaxed); }

 private:
  struct Sample {
    std::uint64_t now_ns;
    std::uint64_t delay_ns;  ///< that the MPI thread has waited
    std::uint64_t own_ns;    ///< that the caller has run
  };
  static constexpr std::uint64_t look_interval_ns = 20'000'000;

  [[nodiscard]] static std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
  [[nodiscard]] std::optional<Sample> sample() const noexcept {
    const std::optional<std::uint64_t> delay_ns = delay_.ns();
    if (!delay_ns) return std::nullopt;
    return Sample{clock_ns(CLOCK_MONOTONIC), *delay_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID)};
  }

  node::RunDelay delay_;
  std::optional<Sample> last_;
  std::atomic<bool> known_{false};  ///< a hint; orders nothing
};

}  // namespace overlap
