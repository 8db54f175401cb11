// The interrupt thread beside a program that computes and stays inside MPI by turns, in virtual
// time.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/interruption.hpp"

#include "test/support/catch.hpp"

#include <algorithm>
#include <cstdint>

namespace {

using overlap::Doze;
using overlap::InterruptLoop;
using overlap::Sleep;
using overlap::Stays;

constexpr std::uint64_t ms = 1'000'000;
constexpr std::uint64_t us = 1'000;

/// What the program does, again and again. It has large messages outstanding all the time.
struct Period {
  std::uint64_t inside_ns = 0;
  std::uint64_t computes_ns = 0;
  /// Of each millisecond, others have its processor.
  std::uint64_t lost_ns = 0;
  bool wakes_by_arrivals = false;  ///< nothing more is there when it looks: the thread arms itself
  bool takes_over = false;         ///< neighbours ring: who stays inside says that they need not
  bool reads_first = false;        ///< before the thread has the lock, which it finds free
};

class Program {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  using Interruption = overlap::Interruption<Program>;

  explicit Program(Period period) : period_(period) {}

  /// @returns  the share of the computations in which the thread has taken a turn
  double run_served_pct() {
    interruption_.run();
    return 100.0 * static_cast<double>(served_) / periods;
  }
  unsigned wakes = 0;
  unsigned taken_turns = 0;

  // The host.
  [[nodiscard]] bool stopping() const { return now_ns_ >= begin + periods * length(); }
  bool sleep(Sleep sleep) {
    ++wakes;
    nap_due_ns_ = sleep.until == Sleep::Until::time ? now_ns_ + sleep.nap_ns : UINT64_MAX;
    // Messages come in every 100 us.
    const std::uint64_t arrival_ns =
        sleep.until == Sleep::Until::arrival ? now_ns_ + 100 * us : UINT64_MAX;
    while (!stopping()) {
      advance(10 * us);
      if (now_ns_ >= ring_due_ns_) {
        ring_due_ns_ = UINT64_MAX;
        return true;
      }
      if (now_ns_ >= std::min(nap_due_ns_, arrival_ns)) return false;
    }
    return false;
  }
  [[nodiscard]] bool try_lock() const { return period_.reads_first || !is_inside(); }
  static void unlock() {}
  [[nodiscard]] std::uint32_t turns() const { return turns_; }
  static bool wanted() { return true; }
  Interruption::Turn turn() {
    ++taken_turns;
    if (period_.reads_first) return {};
    if (period() != last_served_) ++served_;
    last_served_ = period();
    advance(50 * us);
    const bool moves = !period_.wakes_by_arrivals || std::exchange(moves_, !moves_);
    return {.moved = moves};
  }
  static bool is_stale() { return false; }
  static void fence() {}
  [[nodiscard]] std::uint64_t now_ns() const { return now_ns_; }
  static bool look_again(bool) { return false; }
  Atomic<Doze>& doze() { return doze_; }

  static constexpr std::uint64_t periods = 300;

 private:
  static constexpr std::uint64_t begin = 1'000 * ms;

  [[nodiscard]] std::uint64_t length() const { return period_.inside_ns + period_.computes_ns; }
  [[nodiscard]] std::uint64_t period() const { return (now_ns_ - begin) / length(); }
  [[nodiscard]] bool is_inside() const { return (now_ns_ - begin) % length() < period_.inside_ns; }
  void advance(std::uint64_t ns) {
    for (std::uint64_t gone = 0; gone < ns; gone += 10 * us) {
      now_ns_ += 10 * us;
      if (now_ns_ % ms < period_.lost_ns) continue;
      used_ns_ += 10 * us;
      if (is_inside()) stay();
    }
  }
  void stay() {
    turns_ += 16;
    const std::uint32_t by_ns = stays_.note(
        now_ns_, turns_, [this] { return Stays::Usage{.thread = this, .processor_ns = used_ns_}; });
    if (period_.takes_over && interruption_.take_over(now_ns_, by_ns)) {
      ring_due_ns_ = now_ns_ + by_ns;
      return;
    }
    const auto [ring, nap] = interruption_.put_off(now_ns_, by_ns);
    if (ring) ring_due_ns_ = now_ns_ + by_ns;
    if (nap) nap_due_ns_ = now_ns_ + by_ns;
  }

  const Period period_;
  std::uint64_t now_ns_ = begin;
  std::uint64_t used_ns_ = 0;
  std::uint64_t nap_due_ns_ = UINT64_MAX;
  std::uint64_t ring_due_ns_ = UINT64_MAX;
  std::uint32_t turns_ = 0;
  std::uint64_t last_served_ = UINT64_MAX;
  std::uint64_t served_ = 0;
  bool moves_ = true;
  std::atomic<Doze> doze_{Doze::awake};
  Stays stays_;
  Interruption interruption_{*this};
};

}  // namespace

TEST_CASE("computations between stays inside MPI are served, whatever their lengths",
          "[interrupt][P4.3]") {
  for (const std::uint64_t computes_ns : {2500 * us, 4 * ms, 5 * ms, 8 * ms, 20 * ms}) {
    for (const std::uint64_t inside_ns : {100 * us, 300 * us, 1 * ms, 3 * ms, 10 * ms}) {
      for (const std::uint64_t lost_ns : {0 * us, 500 * us}) {
        // One of 2 ms of processor time cannot be told from calls that move much data.
        if (computes_ns * (ms - lost_ns) / ms <= 2 * ms) continue;
        for (const auto& [by_arrivals, takes_over] :
             {std::pair{false, false}, {true, false}, {false, true}, {true, true}}) {
          Program program({inside_ns, computes_ns, lost_ns, by_arrivals, takes_over});
          INFO("computes " << computes_ns << " ns, inside " << inside_ns << " ns, lost " << lost_ns
                           << ", arrivals " << by_arrivals << ", takes over " << takes_over);
          CHECK(program.run_served_pct() >= 90);
        }
      }
    }
  }
}

TEST_CASE("who stays inside MPI has no rival for what arrives", "[interrupt][P4.5]") {
  Program program({.inside_ns = 10 * ms,
                   .computes_ns = 0,
                   .wakes_by_arrivals = true,
                   .takes_over = true,
                   .reads_first = true});
  static_cast<void>(program.run_served_pct());
  CHECK(program.taken_turns <= 2);
}

TEST_CASE("who stays inside MPI is not disturbed", "[interrupt][P4.5]") {
  for (const std::uint64_t lost_ns : {0 * us, 500 * us}) {
    Program program({.inside_ns = 10 * ms, .computes_ns = 0, .lost_ns = lost_ns});
    CHECK(program.run_served_pct() == 0);
    INFO(lost_ns);
    CHECK(program.wakes <= 10);
  }
}
