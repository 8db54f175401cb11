// Run real code on a model machine with store buffers (x86 TSO) and explore every interleaving. For
// tests only.
//
// Each thread of a scenario is a fiber that stops before every visible step: an atomic access, a
// membarrier, a futex call. The explorer then chooses who goes on, or which store buffer writes its
// oldest store to memory. It searches depth first and starts again from the beginning for every
// path. Threads are deterministic, so a thread's state is the list of values its steps returned,
// and the state after a step is known before the fiber runs on: what leads to a state seen before
// is never taken.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <ucontext.h>
#include <unordered_set>
#include <utility>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace overlap::tso {

enum class StepKind : std::uint8_t {
  local,
  load,
  store,
  fenced_store,
  exchange,
  compare_exchange,
  modify,  ///< clear the bits of `expected`, set those of `value`, answer what was there
  add,     ///< answer what was there
  membarrier,
  wait,
  await_zero,
  await_equal,  ///< until the cell holds `expected`
  await_clear,  ///< until it has none of the bits of `expected`
  wake_one,
  wake_all
};

struct Step {
  StepKind kind = StepKind::local;
  int cell = -1;
  std::uint64_t expected = 0;
  std::uint64_t value = 0;
  std::uint64_t mask = UINT64_MAX;  ///< of a sum, which wraps
};

enum class Outcome : std::uint8_t { holds, two_inside, deadlock, wrong_sum };

/// A sanitizer's build is slow and looks for other faults: it follows the first paths only, enough
/// for every planted fault. The plain build follows all.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::uint64_t paths_max = 4000;
#else
inline constexpr std::uint64_t paths_max = ~std::uint64_t{0};
#endif

struct Verdict {
  Outcome outcome = Outcome::holds;
  std::uint64_t states = 0;
  std::uint64_t paths = 0;
  std::string story;  ///< the steps that led to a fault
};

class Machine {
 public:
  /// @param setup  called at the start of every path; makes the objects under test (cells count up
  /// from 0)
  /// @param threads  bodies; number 0 runs as thread 0
  /// @param at_end  called when all threads have ended and all buffers are empty; false is a fault
  Machine(std::function<void()> setup, std::vector<std::function<void()>> threads,
          std::function<bool()> at_end)
      : setup_(std::move(setup)), bodies_(std::move(threads)), at_end_(std::move(at_end)) {
    stacks_.resize(bodies_.size(), std::vector<char>(stack_bytes));
    contexts_.resize(bodies_.size());
  }

  Verdict explore() {
    Verdict verdict;
    std::vector<Branch> path;
    do {
      ++verdict.paths;
      verdict.outcome = run(path);
    } while (verdict.outcome == Outcome::holds && backtrack(path) && !is_cut_off(verdict));
    verdict.states = seen_.size();
    if (verdict.outcome != Outcome::holds) verdict.story = retell(path);
    return verdict;
  }

  // --- called by the code under test, inside a fiber or in setup ---------------------
  int new_cell(std::uint64_t value) {
    memory_.push_back(value);
    return static_cast<int>(memory_.size()) - 1;
  }

  /// Announce a step, let the explorer choose, do it when chosen.
  std::uint64_t step(Step next) {
    if (running_ < 0) return perform_in_setup(next);
    const auto me = static_cast<std::size_t>(running_);
    threads_[me].next = next;
    swapcontext(&contexts_[me], &scheduler_);
    return threads_[me].result;
  }

  void enter() {
    if (++inside_ > 1) two_inside_ = true;
  }
  void leave() { --inside_; }
  [[nodiscard]] int self() const { return running_; }
  [[nodiscard]] std::uint64_t cell(int id) const { return memory_[static_cast<std::size_t>(id)]; }

  static inline Machine* current = nullptr;

 private:
  static constexpr std::size_t stack_bytes = 64 * 1024;
  enum class State : std::uint8_t { ready, asleep, ended };

  struct Store {
    int cell;
    std::uint64_t value;
  };
  struct Thread {
    State state = State::ready;
    Step next{};
    std::uint64_t result = 0;
    std::uint64_t history = 1469598103934665603ULL;
    std::vector<Store> buffer;  ///< oldest first
  };
  struct Choice {
    int thread;
    bool flush;
    unsigned variant;  ///< which sleeper a wake_one wakes
  };
  /// A state on the path and the choices that lead on to states which no other branch has claimed.
  struct Branch {
    std::vector<Choice> choices;
    std::size_t chosen = 0;
    [[nodiscard]] const Choice& choice() const { return choices[chosen]; }
  };

  static bool is_cut_off(const Verdict& verdict) {
    if (verdict.paths < paths_max) return false;
    std::printf("exploration cut off after %llu paths: a sanitizer's build\n",
                static_cast<unsigned long long>(verdict.paths));
    std::fflush(stdout);
    return true;
  }

  static bool backtrack(std::vector<Branch>& path) {
    while (!path.empty() && ++path.back().chosen == path.back().choices.size()) path.pop_back();
    return !path.empty();
  }

  /// Replay `path`, then extend it until it ends, is at fault or meets only states seen before.
  Outcome run(std::vector<Branch>& path) {
    reset();
    if (path.empty()) seen_.insert(key());
    for (const Branch& branch : path) take(branch.choice());
    while (!two_inside_) {
      std::vector<Choice> choices = enabled();
      if (choices.empty()) return finish();
      std::erase_if(choices, [this](const Choice& choice) { return !try_claim(choice); });
      if (choices.empty()) return Outcome::holds;
      path.push_back({std::move(choices)});
      take(path.back().choice());
    }
    return Outcome::two_inside;
  }

  std::string retell(const std::vector<Branch>& path) {
    reset();
    std::string story;
    for (const Branch& branch : path) {
      story += line_about(branch.choice());
      take(branch.choice());
    }
    return story;
  }

  /// Claim the state that `choice` leads to for this branch. @returns  whether no branch had it
  bool try_claim(const Choice& choice) {
    saved_memory_ = memory_;
    saved_threads_ = threads_;
    static_cast<void>(change_state(choice));
    const bool is_new = seen_.insert(key()).second;
    memory_.swap(saved_memory_);
    threads_.swap(saved_threads_);
    return is_new;
  }

  void reset() {
    current = this;
    memory_.clear();
    inside_ = 0;
    two_inside_ = false;
    running_ = -1;
    setup_();
    threads_.assign(bodies_.size(), {});
    for (std::size_t i = 0; i < bodies_.size(); ++i) {
#if defined(__SANITIZE_ADDRESS__)
      __asan_unpoison_memory_region(stacks_[i].data(), stack_bytes);
#endif
      ucontext_t& context = contexts_[i];
      getcontext(&context);
      context.uc_stack.ss_sp = stacks_[i].data();
      context.uc_stack.ss_size = stack_bytes;
      context.uc_link = nullptr;
      makecontext(&context, &Machine::fiber, 0);
      resume(i);  // up to its first visible step
    }
  }

  static void fiber() {
    Machine& machine = *current;
    const auto me = static_cast<std::size_t>(machine.running_);
    machine.bodies_[me]();
    machine.threads_[me].state = State::ended;
    swapcontext(&machine.contexts_[me], &machine.scheduler_);
  }

  void resume(std::size_t thread) {
    running_ = static_cast<int>(thread);
    swapcontext(&scheduler_, &contexts_[thread]);
    running_ = -1;
  }

  static bool awaits(const Step& step) {  // 0 is what await_zero expects
    return step.kind == StepKind::await_zero || step.kind == StepKind::await_equal ||
           step.kind == StepKind::await_clear;
  }
  bool has_come(const Thread& thread) const {
    const Step& step = thread.next;
    const std::uint64_t seen = visible(thread, step.cell);
    return step.kind == StepKind::await_clear ? (seen & step.expected) == 0 : seen == step.expected;
  }

  std::vector<Choice> enabled() const {
    std::vector<Choice> choices;
    for (int i = 0; i < static_cast<int>(threads_.size()); ++i) {
      const Thread& thread = threads_[static_cast<std::size_t>(i)];
      if (!thread.buffer.empty()) choices.push_back({i, true, 0});
      if (thread.state != State::ready) continue;
      if (awaits(thread.next) && !has_come(thread)) continue;
      const auto variants = thread.next.kind == StepKind::wake_one
                                ? std::max<std::size_t>(1, sleepers(thread.next.cell).size())
                                : 1;
      for (unsigned v = 0; v < variants; ++v) choices.push_back({i, false, v});
    }
    return choices;
  }

  Outcome finish() const {
    for (const Thread& thread : threads_)
      if (thread.state != State::ended) return Outcome::deadlock;
    return at_end_() ? Outcome::holds : Outcome::wrong_sum;
  }

  void take(const Choice& choice) {
    if (change_state(choice)) resume(static_cast<std::size_t>(choice.thread));
  }

  /// @returns  whether the thread goes on
  bool change_state(const Choice& choice) {
    Thread& thread = threads_[static_cast<std::size_t>(choice.thread)];
    if (choice.flush) {
      flush_one(thread);
      return false;
    }
    const bool goes_on = perform(thread, choice.variant);
    note(thread, thread.result);
    return goes_on;
  }

  bool perform(Thread& thread, unsigned variant) {
    const Step step = thread.next;
    switch (step.kind) {
      case StepKind::local: thread.result = 0; return true;
      case StepKind::load:
      case StepKind::await_zero:
      case StepKind::await_equal:
      case StepKind::await_clear: thread.result = visible(thread, step.cell); return true;
      case StepKind::store:
        thread.buffer.push_back({step.cell, step.value});
        thread.result = 0;
        return true;
      case StepKind::fenced_store:
      case StepKind::exchange:
        drain(thread);
        thread.result = std::exchange(memory_[static_cast<std::size_t>(step.cell)], step.value);
        return true;
      case StepKind::compare_exchange: {
        drain(thread);
        std::uint64_t& word = memory_[static_cast<std::size_t>(step.cell)];
        thread.result = word;
        if (word == step.expected) word = step.value;
        return true;
      }
      case StepKind::modify: {
        drain(thread);
        std::uint64_t& word = memory_[static_cast<std::size_t>(step.cell)];
        thread.result = std::exchange(word, (word & ~step.expected) | step.value);
        return true;
      }
      case StepKind::add: {
        drain(thread);
        std::uint64_t& word = memory_[static_cast<std::size_t>(step.cell)];
        thread.result = std::exchange(word, (word + step.value) & step.mask);
        return true;
      }
      case StepKind::membarrier:
        for (Thread& other : threads_) drain(other);
        thread.result = 0;
        return true;
      case StepKind::wait:
        drain(thread);
        thread.result = 0;
        if (memory_[static_cast<std::size_t>(step.cell)] != step.expected) return true;
        thread.state = State::asleep;
        return false;
      case StepKind::wake_one:
      case StepKind::wake_all: {
        drain(thread);
        thread.result = 0;
        const auto asleep = sleepers(step.cell);
        for (std::size_t i = 0; i < asleep.size(); ++i)
          if (step.kind == StepKind::wake_all || i == variant) wake(threads_[asleep[i]]);
        return true;
      }
    }
    return true;
  }

  /// A woken thread returns from its wait as its next step.
  void wake(Thread& sleeper) {
    sleeper.state = State::ready;
    sleeper.next = {};
    note(sleeper, 1);
  }

  std::uint64_t perform_in_setup(const Step& step) {
    std::uint64_t& word = memory_[static_cast<std::size_t>(step.cell)];
    const std::uint64_t before = word;
    if (step.kind == StepKind::store || step.kind == StepKind::fenced_store) word = step.value;
    return before;
  }

  std::vector<std::size_t> sleepers(int cell) const {
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < threads_.size(); ++i)
      if (threads_[i].state == State::asleep && threads_[i].next.cell == cell) found.push_back(i);
    return found;
  }

  std::uint64_t visible(const Thread& thread, int cell) const {
    for (auto store = thread.buffer.rbegin(); store != thread.buffer.rend(); ++store)
      if (store->cell == cell) return store->value;
    return memory_[static_cast<std::size_t>(cell)];
  }

  void flush_one(Thread& thread) {
    memory_[static_cast<std::size_t>(thread.buffer.front().cell)] = thread.buffer.front().value;
    thread.buffer.erase(thread.buffer.begin());
  }

  void drain(Thread& thread) {
    while (!thread.buffer.empty()) flush_one(thread);
  }

  static void note(Thread& thread, std::uint64_t value) {
    thread.history = (thread.history ^ (value + 0x9e3779b97f4a7c15ULL)) * 1099511628211ULL;
    thread.history ^= thread.history >> 29;
  }

  /// Whether a thread has ended, or at which step it stands, is known from what its steps returned.
  std::string key() const {
    std::string bytes;
    const auto put = [&](std::uint64_t v) {
      bytes.append(reinterpret_cast<const char*>(&v), sizeof v);
    };
    for (std::uint64_t word : memory_) put(word);
    for (const Thread& thread : threads_) {
      put(thread.history);
      put(thread.state == State::asleep ? 1 : 0);
      put(thread.buffer.size());
      for (const Store& store : thread.buffer) {
        put(static_cast<std::uint64_t>(store.cell));
        put(store.value);
      }
    }
    return bytes;
  }

  std::string line_about(const Choice& choice) const {
    const Thread& thread = threads_[static_cast<std::size_t>(choice.thread)];
    static constexpr std::array names{
        "local",    "load",    "store",      "fenced store", "exchange",   "compare-exchange",
        "modify",   "add",     "membarrier", "wait",         "await zero", "await equal",
        "wake one", "wake all"};
    char line[96];
    if (choice.flush)
      std::snprintf(line, sizeof line, "t%d: buffer writes cell %d = %llu\n", choice.thread,
                    thread.buffer.front().cell,
                    static_cast<unsigned long long>(thread.buffer.front().value));
    else
      std::snprintf(line, sizeof line, "t%d: %s cell %d (%llu)\n", choice.thread,
                    names[static_cast<std::size_t>(thread.next.kind)], thread.next.cell,
                    static_cast<unsigned long long>(thread.next.value));
    return line;
  }

  std::function<void()> setup_;
  std::vector<std::function<void()>> bodies_;
  std::function<bool()> at_end_;
  std::vector<std::vector<char>> stacks_;
  std::vector<ucontext_t> contexts_;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> memory_;
  std::vector<Thread> saved_threads_;  ///< of try_claim(), which needs their room again and again
  std::vector<std::uint64_t> saved_memory_;  ///< the same
  std::unordered_set<std::string> seen_;
  ucontext_t scheduler_{};
  int running_ = -1;
  int inside_ = 0;
  bool two_inside_ = false;
};

/// std::atomic's face on a cell of the model machine.
template <class T>
class Atomic {
 public:
  explicit Atomic(T value) : cell_(Machine::current->new_cell(static_cast<std::uint64_t>(value))) {}
  T load(std::memory_order) const {
    return static_cast<T>(Machine::current->step({StepKind::load, cell_}));
  }
  void store(T value, std::memory_order order) {
    const auto kind = order == std::memory_order_seq_cst ? StepKind::fenced_store : StepKind::store;
    Machine::current->step({kind, cell_, 0, static_cast<std::uint64_t>(value)});
  }
  T exchange(T value, std::memory_order) {
    return static_cast<T>(
        Machine::current->step({StepKind::exchange, cell_, 0, static_cast<std::uint64_t>(value)}));
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order) {
    const auto found = static_cast<T>(Machine::current->step({StepKind::compare_exchange, cell_,
                                                              static_cast<std::uint64_t>(expected),
                                                              static_cast<std::uint64_t>(value)}));
    const bool done = found == expected;
    expected = found;
    return done;
  }
  /// Clear and set bits in one step. @returns  what was there
  T modify(T clear, T set) {
    return static_cast<T>(
        Machine::current->step({StepKind::modify, cell_, static_cast<std::uint64_t>(clear),
                                static_cast<std::uint64_t>(set)}));
  }
  T fetch_add(T value, std::memory_order) {
    constexpr std::uint64_t mask = UINT64_MAX >> (64 - 8 * sizeof(T));
    return static_cast<T>(
        Machine::current->step({StepKind::add, cell_, 0, static_cast<std::uint64_t>(value), mask}));
  }
  [[nodiscard]] int cell() const { return cell_; }

 private:
  int cell_;
};

/// Written and read by one thread only, or only for assertions: no visible step.
template <class T>
class Atomic<T*> {
 public:
  explicit Atomic(T* value) : value_(value) {}
  T* load(std::memory_order) const { return value_; }
  void store(T* value, std::memory_order) { value_ = value; }

 private:
  T* value_;
};

}  // namespace overlap::tso
