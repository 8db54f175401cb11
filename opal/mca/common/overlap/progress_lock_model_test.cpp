// The progress lock's own code in every interleaving on a machine with store buffers.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/progress_lock_slow.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <optional>

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread

namespace {

using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::StepKind;
using overlap::tso::Verdict;

enum class Fault : std::uint8_t { none, no_membarrier, no_wake, wakes_too_few, membarrier_refused };

/// LinuxPlatform on the model machine, with one fault planted.
template <Fault fault>
struct ModelPlatform {
  template <class T>
  using Atomic = overlap::tso::Atomic<T>;
  using Token = void*;
  static constexpr std::memory_order owner_store_order = std::memory_order_relaxed;
  static constexpr std::memory_order owner_load_order = std::memory_order_acquire;
  static constexpr bool checks = true;
  static constexpr unsigned spin_count = 0;

  static Token self() noexcept {
    const int thread = std::max(0, Machine::current->self());  // thread 0 does the setup
    return reinterpret_cast<Token>(static_cast<std::intptr_t>(thread + 1));
  }
  static void compiler_fence() noexcept {}
  static bool offers_biased() noexcept { return true; }
  static void ready_guest() noexcept {}
  static bool membarrier() noexcept {
    if (fault == Fault::membarrier_refused) return false;
    if (fault != Fault::no_membarrier) Machine::current->step({StepKind::membarrier});
    return true;
  }
  static void pause() noexcept {}
  static void wait(Atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
    Machine::current->step({StepKind::wait, word.cell(), expected});
  }
  static void wake_one(Atomic<std::uint32_t>& word) noexcept {
    if (fault != Fault::no_wake) Machine::current->step({StepKind::wake_one, word.cell()});
  }
  static void wake_all(Atomic<std::uint32_t>& word) noexcept {
    if (fault == Fault::no_wake) return;
    Machine::current->step(
        {fault == Fault::wakes_too_few ? StepKind::wake_one : StepKind::wake_all, word.cell()});
  }
  static void await_zero(const Atomic<std::uint32_t>& word) noexcept {
    Machine::current->step({StepKind::await_zero, word.cell()});
  }
  [[noreturn]] static void fail(const char*) noexcept { std::abort(); }
};

enum class Act : std::uint8_t { lock, try_lock };
using Script = std::vector<Act>;

enum class Inside : std::uint8_t { adds, only_looks };

/// Thread 0 owns the lock in biased mode. Every thread plays its script; whoever gets in adds 1 to
/// a plain cell.
template <Fault fault = Fault::none>
Verdict explore(bool biased, const std::vector<Script>& scripts, Inside inside = Inside::adds) {
  using Lock = overlap::BasicProgressLock<ModelPlatform<fault>>;
  std::optional<Lock> lock;
  std::optional<overlap::tso::Atomic<std::uint32_t>> sum;
  std::vector<std::uint32_t> entries(scripts.size());

  const auto setup = [&] {
    lock.emplace();
    lock->start(biased ? Lock::Mode::biased : Lock::Mode::shared);
    sum.emplace(0U);
    std::ranges::fill(entries, 0U);
  };
  const auto body = [&](std::size_t me) {
    for (Act act : scripts[me]) {
      if (act == Act::lock)
        lock->lock();
      else if (!lock->try_lock())
        continue;
      Machine::current->enter();
      const std::uint32_t before = sum->load(std::memory_order_relaxed);
      if (inside == Inside::adds) {
        sum->store(before + 1, std::memory_order_relaxed);
        ++entries[me];
      }
      Machine::current->leave();
      lock->unlock();
    }
  };
  std::vector<std::function<void()>> threads;
  for (std::size_t i = 0; i < scripts.size(); ++i) threads.emplace_back([&body, i] { body(i); });
  const auto at_end = [&] {
    std::uint32_t all = 0;
    for (std::uint32_t n : entries) all += n;
    return Machine::current->cell(sum->cell()) == all;
  };
  Machine machine(setup, threads, at_end);
  return machine.explore();
}

constexpr Act L = Act::lock;
constexpr Act T = Act::try_lock;

void check_holds(const Verdict& verdict) {
  INFO(verdict.states << " states, " << verdict.paths << " paths; the last one:\n"
                      << verdict.story);
  CHECK(verdict.outcome == Outcome::holds);
  CHECK(verdict.states > 10);
}

}  // namespace

TEST_CASE("biased: owner and one guest that tries", "[progress_lock][model]") {
  check_holds(explore(true, {{L, L}, {T, T}}));
  check_holds(explore(true, {{T, L}, {T, T}}));
}

TEST_CASE("biased: owner and two guests that try", "[progress_lock][model]") {
  check_holds(explore(true, {{L, L}, {T}, {T}}));
}

TEST_CASE("biased: owner, a guest that waits and a guest that tries", "[progress_lock][model]") {
  check_holds(explore(true, {{L, L}, {L}, {T}}));
}

TEST_CASE("biased: owner and two guests that wait", "[progress_lock][model]") {
  check_holds(explore(true, {{L}, {L}, {L}}));
}

TEST_CASE("shared: three threads", "[progress_lock][model]") {
  check_holds(explore(false, {{L}, {L}, {L}}));
  check_holds(explore(false, {{L, L}, {L}, {T}}));
}

TEST_CASE("a refused membarrier keeps guests out", "[progress_lock][model]") {
  check_holds(explore<Fault::membarrier_refused>(true, {{L, L}, {T, T}}));
}

TEST_CASE("planted: membarrier left out lets two in", "[progress_lock][model]") {
  for (const Script& guest : {Script{T}, Script{L}}) {
    const Verdict verdict = explore<Fault::no_membarrier>(true, {{L}, guest}, Inside::only_looks);
    CHECK(verdict.outcome == Outcome::two_inside);
    CHECK_FALSE(verdict.story.empty());
    CHECK(explore<Fault::no_membarrier>(true, {{L}, guest}).outcome ==
          Outcome::wrong_sum);  // found first: an update is lost
  }
}

TEST_CASE("planted: a wake-up left out ends in deadlock", "[progress_lock][model]") {
  CHECK(explore<Fault::no_wake>(true, {{L}, {T}}).outcome == Outcome::deadlock);
  CHECK(explore<Fault::no_wake>(false, {{L}, {L}}).outcome == Outcome::deadlock);
}

TEST_CASE("planted: waking one of owner and guests is not enough", "[progress_lock][model]") {
  CHECK(explore<Fault::wakes_too_few>(true, {{L}, {L}, {L}}).outcome == Outcome::deadlock);
}

#endif
