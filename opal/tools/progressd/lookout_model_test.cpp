// A helper's own code, a receiver that arms itself, a sender, MPI calls, a helper that stops,
// sleeps or dies: in every order.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/tools/progressd/lookout.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <optional>

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread

namespace {

using overlap::progressd::Lookout;
using overlap::progressd::Patience;
using overlap::progressd::Pause;
using overlap::progressd::Sight;
using overlap::progressd::Taken;
using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::StepKind;
using overlap::tso::Verdict;
using Cell = overlap::tso::Atomic<std::uint32_t>;
constexpr auto fenced = std::memory_order_seq_cst;
constexpr auto relaxed = std::memory_order_relaxed;

enum class Fault : std::uint8_t {
  none,
  leaves_and_goes,  ///< a sender does not read again whether anybody watches
  stops_late,       ///< that nobody watches any more is seen after the last look
  one_turn,         ///< a single turn counts as one that began after the arrival
  never_rings,      ///< a helper claims the wake and does not ring
  never_nudges,     ///< a client that arms itself leaves a sleeping helper alone
  sleeps_early,     ///< that the helper sleeps is seen after its last look
  death_unseen,     ///< nobody tells a client that its helper has died
  never_clears      ///< a client whose helper has died leaves its area as it was
};

struct Died {};

/// One receiver, one sender, one helper.
///
/// Ownership
///   message_   1: given to the BTL and not polled yet
///   doze_ .. turns_, state_    as in the node area and the helper's page
///   client_, helper_    the kernel's words for what the two sleep on; 0: rung
///   tick_               0: there is something new to see for a helper that spins
///   unwatched_          0: a client has been watched
template <Fault fault>
class World {
 public:
  explicit World(const Patience& patience) : lookout_(*this, patience) {}

  unsigned dies_at = 0;        ///< a step of the helper, counted from 1; 0: it lives
  unsigned stops_at = 0;       ///< a round of the helper; the same
  bool calls = false;          ///< call_mpi() is called
  bool watch_awaited = false;  ///< await_watch() is called

  // --- the host of Lookout ------------------------------------------------------------------

  std::size_t clients() const { return 1; }
  Sight& sight(std::size_t) { return sight_; }
  std::uint64_t now_ns() const { return 0; }
  bool is_armed(std::size_t) { return alive(doze_).load(fenced) == armed; }
  std::uint64_t wakes(std::size_t) const { return 0; }
  std::uint32_t turns(std::size_t) {
    return alive(turns_).load(fenced) * (fault == Fault::one_turn ? 2 : 1);
  }
  void watch(std::size_t) {
    if (published_) return;
    published_ = true;
    alive(watched_).store(1, fenced);
    if (watch_awaited) unwatched_.store(0, fenced);
  }
  void unwatch(std::size_t) {
    published_ = false;
    alive(watched_).store(0, fault == Fault::stops_late ? relaxed : fenced);
  }
  Taken take(std::size_t) {
    if (alive(full_).load(fenced) == 0) return Taken::nothing;
    return alive(full_).exchange(0, fenced) != 0 ? Taken::wanted : Taken::nothing;
  }
  bool is_still_waited_for(std::size_t) const { return true; }
  bool wake(std::size_t) {
    if (!claim(alive(doze_))) return false;
    if (fault != Fault::never_rings) alive(client_).store(0, fenced);
    return true;
  }
  void show_awake() {
    again_ = true;
    alive(state_).store(awake, relaxed);
  }
  void show_napping() {}
  void show_sleeping() {
    alive(state_).store(sleeping, fault == Fault::sleeps_early ? relaxed : fenced);
  }
  bool is_called() { return alive(stopped_).load(fenced) != 0; }

  // --- threads ------------------------------------------------------------------------------

  void help() {
    try {
      for (unsigned round = 1;; ++round) {
        if (round == stops_at || is_called()) return lookout_.retire_all();
        again_ = false;
        const Pause pause = lookout_.round();
        const bool nothing_changes = pause.kind == Pause::Kind::none && !again_ && !sight_.pending;
        if (nothing_changes) await(alive(tick_));
        if (pause.kind != Pause::Kind::sleep) continue;
        await(alive(helper_));
        lookout_.roused();
      }
    } catch (const Died&) {
      if (fault == Fault::death_unseen) return;
      gone_.store(1, fenced);
      client_.store(0, fenced);
    }
  }
  /// The receiver's interrupt thread, until the message is there.
  void receive() {
    if (!begun_ && arm()) return stop();
    for (;;) {
      await(client_);
      doze_.store(awake, fenced);
      const bool alone = dies_at > 0 && gone_.load(fenced) != 0;
      if (alone && fault != Fault::never_clears) watched_.store(0, fenced);
      if (poll() || arm()) return stop();
    }
  }
  /// The receiver is armed and the helper watches it. In a scene.
  void begin() {
    doze_.store(armed, fenced);
    static_cast<void>(lookout_.round());
    static_cast<void>(lookout_.round());
    begun_ = true;
  }
  void send() {
    message_.store(1, fenced);
    if (doze_.load(fenced) != armed) return;
    if (watched_.load(fenced) != 0) {
      full_.exchange(1, fenced);
      const bool watched = fault == Fault::leaves_and_goes || watched_.load(fenced) != 0;
      tick_.store(0, fenced);
      if (watched) return;
    }
    if (claim(doze_)) client_.store(0, fenced);
  }
  /// Calls of the application that progress once each, then it computes.
  void call_mpi(unsigned times, bool counts_first) {
    for (unsigned i = 0; i < times; ++i) {
      if (counts_first) turns_.store(i + 1, fenced);
      const bool found = message_.exchange(0, fenced) != 0;
      if (!counts_first) turns_.store(i + 1, fenced);
      if (!found) continue;
      done_.store(1, fenced);
      client_.store(0, fenced);
    }
  }
  void await_watch() { Machine::current->step({StepKind::await_zero, unwatched_.cell()}); }
  void stop() {
    stopped_.store(1, fenced);
    helper_.store(0, fenced);
    tick_.store(0, fenced);
  }

 private:
  static constexpr std::uint32_t awake = 0, armed = 1, sleeping = 2;

  /// What the helper touches, it touches alive.
  Cell& alive(Cell& cell) {
    if (begun_ && ++step_ == dies_at) throw Died();
    return cell;
  }
  /// @returns  whether it is all over
  bool arm() {
    doze_.store(armed, fenced);
    if (poll()) return true;
    if (fault != Fault::never_nudges && state_.load(fenced) == sleeping) helper_.store(0, fenced);
    return false;
  }
  static void await(Cell& word) {
    Machine::current->step({StepKind::await_zero, word.cell()});
    word.exchange(1, fenced);
  }
  static bool claim(Cell& doze) {
    std::uint32_t expected = armed;
    return doze.compare_exchange_strong(expected, awake, fenced);
  }
  /// By the interrupt thread. @returns  whether it is all over
  bool poll() { return message_.exchange(0, fenced) != 0 || (calls && done_.load(fenced) != 0); }

  Cell message_{0};
  Cell doze_{0};
  Cell watched_{0};
  Cell full_{0};
  Cell turns_{0};
  Cell state_{0};
  Cell client_{1};
  Cell helper_{1};
  Cell tick_{1};
  Cell stopped_{0};
  Cell gone_{0};
  Cell done_{0};
  Cell unwatched_{1};
  bool begun_ = false;
  bool published_ = false;  ///< the helper's own
  unsigned step_ = 0;       ///< the same
  bool again_ = false;
  Sight sight_;
  Lookout<World> lookout_;
};

template <Fault fault>
using Script = std::function<void(World<fault>&)>;

constexpr Patience spins{.spin_ns = 1, .linger_ns = 0, .second_look_ns = 0};
constexpr Patience tires{.spin_ns = 0, .linger_ns = 0, .naps_ns = 0, .second_look_ns = 0};
constexpr Patience naps{.spin_ns = 0, .linger_ns = 0, .naps_ns = 1, .second_look_ns = 0};

/// Thread 0 is the helper, 1 the interrupt thread, 2 the sender, 3 whatever the scene adds.
template <Fault fault>
Verdict explore(const Patience& patience, const Script<fault>& scene, const Script<fault>& sender,
                const Script<fault>& other = {}) {
  std::optional<World<fault>> world;
  const auto setup = [&] { scene(world.emplace(patience)); };
  std::vector<std::function<void()>> threads;
  threads.emplace_back([&] { world->help(); });
  threads.emplace_back([&] { world->receive(); });
  threads.emplace_back([&] { sender(*world); });
  if (other) threads.emplace_back([&] { other(*world); });
  Machine machine(setup, threads, [] { return true; });
  return machine.explore();
}

template <Fault fault>
Verdict one_message(const Patience& patience) {
  return explore<fault>(
      patience, [](auto&) {}, [](auto& world) { world.send(); });
}
template <Fault fault>
Verdict beside_calls(unsigned calls, bool counts_first) {
  return explore<fault>(
      spins,
      [](auto& world) {
        world.calls = true;
        world.begin();
      },
      [](auto& world) { world.send(); }, [=](auto& world) { world.call_mpi(calls, counts_first); });
}
/// The message comes only when the helper watches: it must have been nudged.
template <Fault fault>
Verdict after_watch() {
  return explore<fault>(
      spins, [](auto& world) { world.watch_awaited = true; },
      [](auto& world) {
        world.await_watch();
        world.send();
      });
}
/// The helper dies at a step, or ends at a round, while it watches.
template <Fault fault>
Verdict ending(unsigned dies_at, unsigned stops_at) {
  return explore<fault>(
      spins,
      [=](auto& world) {
        world.dies_at = dies_at;
        world.stops_at = stops_at;
        world.begin();
      },
      [](auto& world) { world.send(); });
}
/// @returns  the first fault of all such endings
template <Fault fault>
Outcome endings() {
  constexpr unsigned steps = 16;
  constexpr unsigned rounds = 4;
  for (unsigned i = 1; i <= steps; ++i) {
    if (const Outcome found = ending<fault>(i, 0).outcome; found != Outcome::holds) return found;
  }
  for (unsigned i = 1; i <= rounds; ++i) {
    if (const Outcome found = ending<fault>(0, i).outcome; found != Outcome::holds) return found;
  }
  return Outcome::holds;
}

void check_holds(const Verdict& verdict) {
  INFO(verdict.states << " states, " << verdict.paths << " paths; the last one:\n"
                      << verdict.story);
  CHECK(verdict.outcome == Outcome::holds);
  CHECK(verdict.states > 50);
}

}  // namespace

TEST_CASE("a message reaches a receiver that sleeps", "[helper][model][P4.1]") {
  check_holds(one_message<Fault::none>(spins));
  check_holds(one_message<Fault::none>(tires));
  check_holds(one_message<Fault::none>(naps));
}

TEST_CASE("calls that progress beside it lose no message", "[helper][model][P4.5]") {
  check_holds(beside_calls<Fault::none>(1, true));
  check_holds(beside_calls<Fault::none>(2, false));
}

TEST_CASE("a client that arms itself is watched", "[helper][model][P4.12]") {
  check_holds(after_watch<Fault::none>());
}

TEST_CASE("a helper that stops or dies loses no message", "[helper][model]") {
  CHECK(endings<Fault::none>() == Outcome::holds);
}

TEST_CASE("planted faults end in a message that nobody receives", "[helper][model]") {
  CHECK(one_message<Fault::leaves_and_goes>(tires).outcome == Outcome::deadlock);
  CHECK(one_message<Fault::stops_late>(tires).outcome == Outcome::deadlock);
  CHECK(beside_calls<Fault::one_turn>(1, false).outcome == Outcome::deadlock);
  CHECK(one_message<Fault::never_rings>(spins).outcome == Outcome::deadlock);
  CHECK(after_watch<Fault::never_nudges>().outcome == Outcome::deadlock);
  CHECK(after_watch<Fault::sleeps_early>().outcome == Outcome::deadlock);
  CHECK(endings<Fault::leaves_and_goes>() == Outcome::deadlock);
  CHECK(endings<Fault::death_unseen>() == Outcome::deadlock);
  CHECK(endings<Fault::never_clears>() == Outcome::deadlock);
}

#endif
