// Nobody who waits for a ticket is forgotten by who lets it in.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/ticket_takers.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <functional>

namespace {

using namespace overlap::newrma;
using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::StepKind;
constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;
constexpr LockType G = LockType::guest;

/// A model's atomic that begins with zero.
template <class T>
struct Zero : overlap::tso::Atomic<T> {
  Zero() : overlap::tso::Atomic<T>(T{0}) {}
};

enum class Fault : std::uint8_t {
  none,
  notes_late,        ///< when it has looked again in vain
  looks_once,        ///< does not look again
  notes_by_a_store,  ///< which may stay in the store buffer while it looks
  asks_early,        ///< before it leaves
  counts_early,      ///< looks before it leaves whether somebody waits
  forgets_guests     ///< wakes those in the queue only
};

enum class Mode : std::uint8_t {
  alone,    ///< each for itself
  together  ///< everybody stays inside until all are: for shared ones only
};

/// Each process takes a ticket, sleeps until it is woken if it may not enter, and leaves.
class Scenario {
 public:
  /// @param tries  each tries first to enter without standing in the queue
  Scenario(std::vector<LockType> types, Fault fault, Mode mode, bool tries)
      : types_(std::move(types)), fault_(fault), mode_(mode), tries_(tries) {}

  Outcome explore() {
    std::vector<std::function<void()>> threads;
    for (std::size_t i = 0; i < types_.size(); ++i) threads.emplace_back([this, i] { play(i); });
    Machine machine([this] { setup(); }, threads, [] { return true; });
    return machine.explore().outcome;
  }

 private:
  void setup() {
    lock_.emplace();
    takers_.emplace();
    arrived_.emplace(0U);
    woken_.clear();
    for (std::size_t i = 0; i < types_.size(); ++i) woken_.emplace_back(0U);
    stored_.clear();
    for (std::size_t i = 0; i < types_.size(); ++i) stored_.emplace_back(0U);
  }

  void note(std::uint32_t ticket, std::size_t me) {
    if (fault_ == Fault::notes_by_a_store)
      stored_[ticket].store(static_cast<std::uint32_t>(me) + 1, std::memory_order_release);
    else
      takers_->note(ticket, static_cast<std::int32_t>(me));
  }
  std::optional<std::int32_t> taker_of(std::uint32_t ticket) {
    if (fault_ != Fault::notes_by_a_store) return takers_->taker_of(ticket);
    if (ticket >= types_.size()) return std::nullopt;
    const std::uint32_t found = stored_[ticket].load(std::memory_order_acquire);
    return found != 0 ? std::optional(static_cast<std::int32_t>(found) - 1) : std::nullopt;
  }
  void wake_taker(std::uint32_t ticket) {
    if (const auto rank = taker_of(ticket))
      woken_[static_cast<std::size_t>(*rank)].store(1, std::memory_order_release);
  }
  void pass_turn() {
    const std::uint32_t shared = lock_->shared_turn(), exclusive = lock_->exclusive_turn();
    if (lock_->is_taken(shared)) wake_taker(shared);
    if (exclusive != shared && lock_->is_taken(exclusive)) wake_taker(exclusive);
  }

  std::optional<std::uint32_t> try_lock(LockType type) {
    const auto ticket = lock_->try_take(type);
    if (!ticket || lock_->try_enter(*ticket, type)) return ticket;
    lock_->give_up();
    if (lock_->is_in_use()) pass_turn();
    return std::nullopt;
  }

  void play(std::size_t me) {
    const LockType type = types_[me];
    const auto at_once = tries_ && type != G ? try_lock(type) : std::nullopt;
    const std::uint32_t ticket = at_once ? *at_once : lock_->take(type);
    bool inside = at_once || lock_->try_enter(ticket, type);
    if (!inside && type != G) {
      if (fault_ != Fault::notes_late) note(ticket, me);
      inside = fault_ != Fault::looks_once && lock_->try_enter(ticket, type);
      if (fault_ == Fault::notes_late && !inside) note(ticket, me);
    }
    while (!inside) {
      Machine::current->step({StepKind::await_equal, woken_[me].cell(), 1});
      woken_[me].exchange(0, std::memory_order_acq_rel);
      inside = lock_->try_enter(ticket, type);
    }
    if (type == S && lock_->is_taken(ticket + 1)) pass_turn();
    if (mode_ == Mode::together) {
      arrived_->fetch_add(1, std::memory_order_relaxed);
      Machine::current->step({StepKind::await_equal, arrived_->cell(), types_.size()});
    }
    if (fault_ == Fault::asks_early) wake_taker(ticket + 1);
    const bool is_awaited = fault_ != Fault::counts_early || lock_->is_taken(ticket + 1);
    if (lock_->leave(type) != 0 && fault_ != Fault::forgets_guests) {
      for (auto& each : woken_) each.store(1, std::memory_order_release);
    }
    if (fault_ != Fault::asks_early && is_awaited && lock_->is_in_use()) pass_turn();
  }

  std::vector<LockType> types_;
  Fault fault_;
  Mode mode_;
  bool tries_;
  std::optional<overlap::tso::Atomic<std::uint32_t>> arrived_;
  std::optional<TicketLock<overlap::tso::Atomic>> lock_;
  std::optional<TicketTakers<Zero, 4>> takers_;
  std::vector<overlap::tso::Atomic<std::uint32_t>> woken_;
  std::vector<overlap::tso::Atomic<std::uint32_t>> stored_;
};

Outcome outcome_of(std::vector<LockType> types, Fault fault, Mode mode = Mode::alone,
                   bool tries = false) {
  return Scenario(std::move(types), fault, mode, tries).explore();
}

}  // namespace

TEST_CASE("ticket takers: one for each ticket, until its place is needed again") {
  TicketTakers<std::atomic, 4> takers;
  CHECK_FALSE(takers.taker_of(0));
  takers.note(0, 7);
  takers.note(1, 0);
  CHECK(takers.taker_of(0) == 7);
  CHECK(takers.taker_of(0) == 7);
  CHECK(takers.taker_of(1) == 0);
  CHECK_FALSE(takers.taker_of(4));  // the same place
  takers.note(4, 3);
  CHECK(takers.taker_of(4) == 3);
  CHECK_FALSE(takers.taker_of(0));
  takers.note(UINT32_MAX, 2);
  CHECK(takers.taker_of(UINT32_MAX) == 2);
}

TEST_CASE("ticket takers: who waits is woken, in every interleaving") {
  for (const LockType a : {S, X}) {
    for (const LockType b : {S, X}) {
      CAPTURE(a == S, b == S);
      CHECK(outcome_of({a, b}, Fault::none) == Outcome::holds);
      CHECK(outcome_of({a, b}, Fault::none, Mode::alone, true) == Outcome::holds);
    }
  }
}

TEST_CASE("ticket takers: shared ones are woken while the one before is inside") {
  CHECK(outcome_of({S, S}, Fault::none, Mode::together) == Outcome::holds);
  CHECK(outcome_of({S, S}, Fault::none, Mode::together, true) == Outcome::holds);
}

// Twelve seconds.
TEST_CASE("ticket takers: shared neighbours wake each other", "[.][long]") {
  CHECK(outcome_of({X, S, S}, Fault::none) == Outcome::holds);
}

TEST_CASE("ticket takers: guests are woken, and wake who waits for them") {
  for (const bool tries : {false, true}) {
    CHECK(outcome_of({X, G}, Fault::none, Mode::alone, tries) == Outcome::holds);
    CHECK(outcome_of({S, G}, Fault::none, Mode::together, tries) == Outcome::holds);
  }
  CHECK(outcome_of({X, G}, Fault::forgets_guests) == Outcome::deadlock);
}

// Twenty seconds. The shared one may come and go while the exclusive one leaves.
TEST_CASE("ticket takers: a guest beside a shared one", "[.][long]") {
  CHECK(outcome_of({X, S, G}, Fault::none) == Outcome::holds);
}

TEST_CASE("ticket takers: planted faults lose a wake-up") {
  for (const Fault fault : {Fault::notes_late, Fault::looks_once, Fault::notes_by_a_store,
                            Fault::asks_early, Fault::counts_early}) {
    CAPTURE(static_cast<int>(fault));
    CHECK(outcome_of({X, X}, fault) == Outcome::deadlock);
  }
}
