// The ticket lock's own code in every interleaving on a machine with store buffers.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/ticket_lock.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <functional>
#include <optional>
#include <vector>

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread

namespace {

using overlap::newrma::LockType;
using overlap::newrma::TicketLock;
using overlap::tso::Atomic;
using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::Step;
using overlap::tso::StepKind;
using overlap::tso::Verdict;

constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;
constexpr LockType G = LockType::guest;

/// The lock's cells, which are made first.
constexpr int shared_turn_cell = 1;
constexpr int state_cell = 2;
constexpr std::uint64_t inside = std::uint64_t{1} << 32U;  ///< in the state: an exclusive one

enum class Fault : std::uint8_t {
  none,
  takes_in_two_steps,      ///< load and store
  leaves_in_two_steps,     ///< the same
  readers_do_not_pass_on,  ///< a shared one keeps the next one out until it leaves
  writer_wakes_no_reader,
  writer_minds_no_reader,  ///< an exclusive one looks at the shared turn
  reader_minds_no_writer,  ///< the exclusive holder lets shared ones in when it enters
  tries_any_ticket,        ///< who tries takes the next ticket and enters, whoever is inside
  tries_in_two_steps,      ///< who tries looks and takes
  gives_up_silently,       ///< who is kept out by a guest takes its ticket with it
  writer_does_not_say_so,  ///< an exclusive one enters without a trace
  guest_looks_first        ///< whether an exclusive one is inside, and counts itself then
};

/// A copy of TicketLock with one fault planted; without one it is the same, step by step.
template <Fault fault>
class FaultyLock {
 public:
  using Ticket = std::uint32_t;
  Ticket take(LockType type) noexcept {
    if (type == G) {
      if (fault == Fault::guest_looks_first) may_enter_ = (state_.load(order) & inside) == 0;
      state_.fetch_add(1, order);
      return 0;
    }
    if (fault == Fault::takes_in_two_steps) return add_in_two_steps(next_, 1U);
    return next_.fetch_add(1, order);
  }
  bool try_enter(Ticket ticket, LockType type) noexcept {
    if (type == G) {
      if (fault == Fault::guest_looks_first && std::exchange(may_enter_, false)) return true;
      return (state_.load(order) & inside) == 0;
    }
    if (type == X && fault != Fault::writer_minds_no_reader) return try_enter_alone(ticket);
    if (shared_turn_.load(order) != ticket) return false;
    if (type == S && fault != Fault::readers_do_not_pass_on) pass_on(ticket);
    return true;
  }
  std::optional<Ticket> try_take(LockType type) noexcept {
    const Ticket next = next_.load(order);
    const bool is_turn =
        fault == Fault::tries_any_ticket ||
        (type == X ? state_.load(order) == 2 * inside * next : shared_turn_.load(order) == next);
    if (!is_turn) return {};
    Ticket taken = next;
    if (fault == Fault::tries_in_two_steps) {
      if (next_.load(order) != next) return {};
      next_.store(next + 1, std::memory_order_release);
    } else if (!next_.compare_exchange_strong(taken, next + 1, order)) {
      return {};
    }
    return next;
  }
  void give_up() noexcept {
    if (fault == Fault::gives_up_silently) return;
    pass_shared_turn();
    state_.fetch_add(2 * inside, order);
  }
  void leave(LockType type) noexcept {
    const bool moves_shared = (type == X && fault != Fault::writer_wakes_no_reader &&
                               fault != Fault::reader_minds_no_writer) ||
                              (type == S && fault == Fault::readers_do_not_pass_on);
    if (moves_shared) pass_shared_turn();
    const bool says_so =
        fault != Fault::writer_does_not_say_so && fault != Fault::writer_minds_no_reader;
    const std::uint64_t sum = type == G ? UINT64_MAX : type == X && says_so ? inside : 2 * inside;
    if (fault == Fault::leaves_in_two_steps)
      static_cast<void>(add_in_two_steps(state_, sum));
    else
      state_.fetch_add(sum, order);
  }

 private:
  static constexpr std::memory_order order = std::memory_order_seq_cst;

  bool try_enter_alone(Ticket ticket) noexcept {
    std::uint64_t turn = 2 * inside * ticket;
    if (state_.load(order) != turn) return false;
    if (fault == Fault::writer_does_not_say_so) return true;
    if (!state_.compare_exchange_strong(turn, turn + inside, order)) return false;
    if (fault == Fault::reader_minds_no_writer) pass_on(ticket);
    return true;
  }
  void pass_on(Ticket ticket) { static_cast<void>(shared_turn_.exchange(ticket + 1, order)); }
  void pass_shared_turn() {
    shared_turn_.store(shared_turn_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  template <class Word>
  static Word add_in_two_steps(Atomic<Word>& word, Word sum) {
    const Word before = word.load(std::memory_order_acquire);
    word.store(before + sum, std::memory_order_release);
    return before;
  }
  Atomic<std::uint32_t> next_{0};
  Atomic<std::uint32_t> shared_turn_{0};
  Atomic<std::uint64_t> state_{0};
  bool may_enter_ = false;
};

void violated() {  // ends the path at once
  Machine::current->enter();
  Machine::current->enter();
}

/// Who has which ticket: known from the steps that its thread has made, so that paths may meet.
struct Standing {
  enum class Place : std::uint8_t { waiting, inside, gone };
  std::uint32_t ticket = 0;
  LockType type{};
  Place place = Place::waiting;
};

using Script = std::vector<LockType>;

enum class Mode : std::uint8_t {
  alone,    ///< each thread for itself
  together  ///< everybody stays inside until all are: for shared ones only
};

template <class Lock>
class Scenario {
 public:
  /// @param tries  so many threads, the first ones, try to enter without standing in the queue
  Scenario(std::vector<Script> scripts, Mode mode, std::size_t tries = 0)
      : scripts_(std::move(scripts)), mode_(mode), tries_(tries) {}

  Verdict explore() {
    std::vector<std::function<void()>> threads;
    std::uint32_t writers = 0;
    for (std::size_t i = 0; i < scripts_.size(); ++i) {
      threads.emplace_back([this, i] { play(i); });
      writers += static_cast<std::uint32_t>(std::ranges::count(scripts_[i], X));
    }
    const auto at_end = [this, writers] {
      return Machine::current->cell(data_->cell()) == writers &&
             Machine::current->cell(copy_->cell()) == writers;
    };
    Machine machine([this] { setup(); }, threads, at_end);
    return machine.explore();
  }

 private:
  void setup() {
    lock_.emplace();
    data_.emplace(0U);
    copy_.emplace(0U);
    arrived_.emplace(0U);
    standings_.assign(scripts_.size(), {});
  }

  void play(std::size_t me) {
    for (const LockType type : scripts_[me]) {
      if (type == G || me >= tries_ || !try_lock(me, type)) enter(me, type);
      check_entry(standings_[me].back());
      standings_[me].back().place = Standing::Place::inside;
      work(type);
      standings_[me].back().place = Standing::Place::gone;
      lock_->leave(type);
    }
  }

  bool try_lock(std::size_t me, LockType type) {
    const std::optional<std::uint32_t> ticket = lock_->try_take(type);
    if (!ticket) return false;
    if (lock_->try_enter(*ticket, type)) {
      standings_[me].push_back({*ticket, type});
      return true;
    }
    lock_->give_up();
    return false;
  }

  void enter(std::size_t me, LockType type) {
    const std::uint32_t ticket = lock_->take(type);
    standings_[me].push_back({ticket, type});
    // Once in vain, then when it can be true.
    while (!lock_->try_enter(ticket, type)) Machine::current->step(until_turn(ticket, type));
  }

  static Step until_turn(std::uint32_t ticket, LockType type) {
    if (type == G) return {StepKind::await_clear, state_cell, inside};
    return type == S ? Step{StepKind::await_equal, shared_turn_cell, ticket}
                     : Step{StepKind::await_equal, state_cell, 2 * inside * ticket};
  }

  void check_entry(const Standing& entering) {
    for (const auto& thread : standings_)
      for (const Standing& other : thread) {
        if (&other == &entering) continue;
        const bool excludes = entering.type == X || other.type == X;
        const bool queue = entering.type != G && other.type != G;
        if ((excludes && other.place == Standing::Place::inside) ||
            (queue &&
             (other.ticket == entering.ticket ||
              (other.ticket < entering.ticket && other.place == Standing::Place::waiting))))
          violated();
      }
  }

  /// One writes two cells, the other reads both.
  void work(LockType type) {
    const std::uint32_t seen = data_->load(std::memory_order_relaxed);
    if (copy_->load(std::memory_order_relaxed) != seen) violated();
    if (type == X) {
      data_->store(seen + 1, std::memory_order_relaxed);
      copy_->store(seen + 1, std::memory_order_relaxed);
    }
    if (mode_ == Mode::together) {
      arrived_->fetch_add(1, std::memory_order_relaxed);
      Machine::current->step({StepKind::await_equal, arrived_->cell(), scripts_.size()});
    }
  }

  std::vector<Script> scripts_;
  Mode mode_;
  std::size_t tries_;
  std::optional<Lock> lock_;
  std::optional<Atomic<std::uint32_t>> data_, copy_, arrived_;
  std::vector<std::vector<Standing>> standings_;
};

using Real = TicketLock<Atomic>;

template <class Lock = Real>
Verdict explore(const std::vector<Script>& scripts, Mode mode = Mode::alone,
                std::size_t tries = 0) {
  return Scenario<Lock>(scripts, mode, tries).explore();
}

template <Fault fault>
Outcome outcome_of(const std::vector<Script>& scripts, Mode mode = Mode::alone,
                   std::size_t tries = 0) {
  return explore<FaultyLock<fault>>(scripts, mode, tries).outcome;
}

void check_holds(const Verdict& verdict) {
  INFO(verdict.states << " states, " << verdict.paths << " paths; the last one:\n"
                      << verdict.story);
  CHECK(verdict.outcome == Outcome::holds);
  CHECK(verdict.states > 10);
}

const std::vector<Script> two_rounds{{S, S}, {S, X}, {X, S}, {X, X}};

}  // namespace

TEST_CASE("two processes, two rounds, every mix", "[ticket_lock][model]") {
  for (const Script& first : two_rounds)
    for (const Script& second : two_rounds) check_holds(explore({first, second}));
}

TEST_CASE("three processes, one round, every mix", "[ticket_lock][model]") {
  for (const LockType a : {S, X})
    for (const LockType b : {S, X})
      for (const LockType c : {S, X}) check_holds(explore({{a}, {b}, {c}}));
}

TEST_CASE("three processes, one of them twice, every mix", "[ticket_lock][model]") {
  for (const Script& twice : two_rounds)
    for (const LockType b : {S, X})
      for (const LockType c : {S, X}) check_holds(explore({twice, {b}, {c}}));
}

// Twenty seconds.
TEST_CASE("three processes, two rounds, all exclusive", "[.][ticket_lock][long]") {
  check_holds(explore({{X, X}, {X, X}, {X, X}}));
}

// Three minutes.
TEST_CASE("three processes, two rounds, every mix", "[.][ticket_lock][long]") {
  // Processes are alike: each set of scripts once.
  for (std::size_t a = 0; a < two_rounds.size(); ++a)
    for (std::size_t b = a; b < two_rounds.size(); ++b)
      for (std::size_t c = b; c < two_rounds.size(); ++c)
        check_holds(explore({two_rounds[a], two_rounds[b], two_rounds[c]}));
}

TEST_CASE("processes that enter at once where nobody is in the way", "[ticket_lock][model]") {
  for (const Script& first : two_rounds)
    for (const Script& second : two_rounds) {
      check_holds(explore({first, second}, Mode::alone, 1));
      check_holds(explore({first, second}, Mode::alone, 2));
    }
  for (const LockType a : {S, X})
    for (const LockType b : {S, X})
      for (const LockType c : {S, X})
        for (const std::size_t tries : {1U, 3U})
          check_holds(explore({{a}, {b}, {c}}, Mode::alone, tries));
  check_holds(explore({{S}, {S}}, Mode::together, 1));
  check_holds(explore({{S}, {S}, {S}}, Mode::together, 3));
}

TEST_CASE("shared neighbours are inside together whoever comes first", "[ticket_lock][model]") {
  check_holds(explore({{S}, {S}}, Mode::together));
  check_holds(explore({{S}, {S}, {S}}, Mode::together));
}

TEST_CASE("a ticket taken for another process", "[ticket_lock][model]") {
  // Thread 0 owns the lock and stands in the queue for thread 2, which does not map it.
  for (const LockType type : {S, X})
    for (const LockType neighbour : {S, X}) {
      std::optional<Real> lock;
      std::optional<Atomic<std::uint32_t>> data, granted, finished;
      const auto enter = [&](LockType how) {
        const std::uint32_t ticket = lock->take(how);
        do {
          Machine::current->step(
              how == S ? Step{StepKind::await_equal, shared_turn_cell, ticket}
                       : Step{StepKind::await_equal, state_cell, 2 * inside * ticket});
        } while (!lock->try_enter(ticket, how));
      };
      const auto work = [&](LockType how) {
        const std::uint32_t seen = data->load(std::memory_order_relaxed);
        if (how == X) data->store(seen + 1, std::memory_order_relaxed);
      };
      const auto owner = [&] {
        enter(type);
        granted->store(1, std::memory_order_release);
        Machine::current->step({StepKind::await_equal, finished->cell(), 1});
        lock->leave(type);
      };
      const auto mapping = [&] {
        for (int round = 0; round < 2; ++round) {
          enter(neighbour);
          work(neighbour);
          lock->leave(neighbour);
        }
      };
      const auto remote = [&] {
        Machine::current->step({StepKind::await_equal, granted->cell(), 1});
        work(type);
        finished->store(1, std::memory_order_release);
      };
      const auto setup = [&] {
        lock.emplace();
        data.emplace(0U);
        granted.emplace(0U);
        finished.emplace(0U);
      };
      const std::uint64_t writers = (type == X ? 1U : 0U) + (neighbour == X ? 2U : 0U);
      Machine machine(setup, {owner, mapping, remote},
                      [&] { return Machine::current->cell(data->cell()) == writers; });
      check_holds(machine.explore());
    }
}

TEST_CASE("the copy without a fault is the lock", "[ticket_lock][model]") {
  for (const Script& first : two_rounds) {
    const std::vector<Script> scripts{first, {X, S}};
    for (const std::size_t tries : {0U, 1U, 2U}) {
      const Verdict copy = explore<FaultyLock<Fault::none>>(scripts, Mode::alone, tries);
      const Verdict real = explore(scripts, Mode::alone, tries);
      CHECK(copy.outcome == Outcome::holds);
      CHECK(copy.states == real.states);
    }
  }
}

TEST_CASE("planted: steps that are not one", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::takes_in_two_steps>({{X}, {X}}) != Outcome::holds);
  CHECK(outcome_of<Fault::leaves_in_two_steps>({{S}, {S}, {X}}) != Outcome::holds);
}

TEST_CASE("planted: shared ones that do not let the next one in", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::readers_do_not_pass_on>({{S}, {S}}, Mode::together) == Outcome::deadlock);
}

TEST_CASE("planted: an exclusive one lets no shared one in", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::writer_wakes_no_reader>({{X}, {S}}) == Outcome::deadlock);
}

TEST_CASE("guests among the others", "[ticket_lock][model]") {
  for (const Script& other : {Script{X}, Script{S}, Script{X, X}, Script{S, X}, Script{X, S}}) {
    for (const std::size_t tries : {0U, 2U}) {
      check_holds(explore({other, {G}}, Mode::alone, tries));
      check_holds(explore({other, {G, G}}, Mode::alone, tries));
    }
  }
  for (const LockType other : {S, X})
    for (const std::size_t tries : {0U, 2U})
      check_holds(explore({{other}, {X}, {G}}, Mode::alone, tries));
  check_holds(explore({{X}, {G}, {G}}));
  check_holds(explore({{S}, {G}, {G}}, Mode::together));
}

TEST_CASE("a guest passes an exclusive one that waits", "[ticket_lock][model]") {
  // The first one stays inside until the guest has been.
  std::optional<Real> lock;
  std::optional<Atomic<std::uint32_t>> been;
  const auto setup = [&] {
    lock.emplace();
    been.emplace(0U);
  };
  const auto first = [&] {
    const std::uint32_t ticket = lock->take(S);
    Machine::current->step({StepKind::await_equal, shared_turn_cell, ticket});
    if (lock->try_enter(ticket, S))
      Machine::current->step({StepKind::await_equal, been->cell(), 1});
    lock->leave(S);
  };
  const auto writer = [&] {
    const std::uint32_t ticket = lock->take(X);
    do Machine::current->step({StepKind::await_equal, state_cell, 2 * inside * ticket});
    while (!lock->try_enter(ticket, X));
    lock->leave(X);
  };
  const auto guest = [&] {
    const std::uint32_t none = lock->take(G);
    while (!lock->try_enter(none, G))
      Machine::current->step({StepKind::await_clear, state_cell, inside});
    been->store(1, std::memory_order_release);
    lock->leave(G);
  };
  Machine machine(setup, {first, writer, guest}, [] { return true; });
  check_holds(machine.explore());
}

TEST_CASE("planted: entered at once", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::tries_any_ticket>({{S}, {S}}, Mode::alone, 2) != Outcome::holds);
  CHECK(outcome_of<Fault::tries_in_two_steps>({{X}, {X}}, Mode::alone, 1) != Outcome::holds);
  CHECK(outcome_of<Fault::gives_up_silently>({{X}, {G}, {X}}, Mode::alone, 1) == Outcome::deadlock);
}

TEST_CASE("planted: guests and exclusive ones beside each other", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::writer_does_not_say_so>({{X}, {G}}) == Outcome::two_inside);
  CHECK(outcome_of<Fault::guest_looks_first>({{X}, {G}}) == Outcome::two_inside);
}

TEST_CASE("planted: shared and exclusive beside each other", "[ticket_lock][model]") {
  CHECK(outcome_of<Fault::writer_minds_no_reader>({{X}, {S}}) == Outcome::two_inside);
  CHECK(outcome_of<Fault::reader_minds_no_writer>({{X}, {S}}) == Outcome::two_inside);
}

#endif
