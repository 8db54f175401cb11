// The interrupt thread's own code, a call that leaves MPI and what arrives, in every order.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/interruption.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"
#include "opal/mca/common/overlap/tso_explorer.hpp"
#include "test/support/catch.hpp"

#include <bit>
#include <optional>

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread

namespace {

using overlap::Sleep;
using overlap::node::claim_wake;
using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::StepKind;
using overlap::tso::Verdict;
using Cell = overlap::tso::Atomic<std::uint32_t>;
constexpr auto fenced = std::memory_order_seq_cst;

enum class Fault : std::uint8_t {
  none,
  never_rings,       ///< calls do not ring
  ring_is_not_kept,  ///< a ring that meets no sleeper is lost
  never_stale,       ///< what a call leaves for a socket that has room is not noticed
  one_turn,          ///< a turn that has moved something is not repeated
  naps_for_ever,     ///< a nap ends only when rung
  arms_blindly,      ///< the thread does not look again when it has armed itself
  posts_blindly,     ///< a call that posts a receive beside an armed thread does not look
  no_sender_fence,   ///< decide_wake() has no fence
  no_poster_fence,   ///< the call that posts has none
  arms_too_late      ///< the thread polls before it arms the adapter
};

/// How messages come.
enum class Way : std::uint8_t {
  socket,
  shared,  ///< a neighbour writes them, and rings
  network  ///< an adapter writes them, and reports the first one after it was armed
};

/// In the place of node::Area, for decide_wake().
struct ModelArea {
  ModelArea(std::uint32_t outstanding, bool has_fence) : listed(outstanding), fences(has_fence) {}
  /// An exchange empties the store buffer.
  void fence() const {
    if (fences) barrier.modify(0, 0);
  }
  overlap::tso::Atomic<overlap::Doze> doze{overlap::Doze::awake};
  overlap::tso::Atomic<std::uint32_t> watched_until_ms{0};
  Cell listed;  ///< bits of receives
  mutable Cell barrier{0};
  bool fences;
};
bool is_waited_for(const ModelArea& area, const overlap::node::Envelope& arrival) {
  return (area.listed.load(std::memory_order_acquire) & static_cast<unsigned>(arrival.tag)) != 0;
}

/// One process: a socket, the progress lock, what it waits for.
///
/// Ownership
///   kernel_    rung | arrived; the kernel's own words for the bell and the socket
///   sends_     progress lock; bits of sends whose data is for a socket that has room, and stale
///   receive_   progress lock; bits of receives, or of sends that wait for an answer, outstanding
///   fifo_      shared memory: bits of messages that neighbours or the adapter have written, unseen
///   adapter_   1: armed
///   unexpected_  progress lock; bits of messages that have been seen before their receive
template <Fault fault>
class World {
 public:
  template <class T>
  using Atomic = overlap::tso::Atomic<T>;
  using Interruption = overlap::Interruption<World>;
  static constexpr std::uint32_t first = 1, second = 2, stale = 4;

  /// @param outstanding  bits of receives, from the start
  World(std::uint32_t outstanding, Way messages)
      : way(messages), area(outstanding, fault != Fault::no_sender_fence), receive_(outstanding) {}

  // --- a neighbour ---------------------------------------------------------------------------

  /// A message through shared memory. @param which  the receive that it is for
  void neighbour_sends(std::uint32_t which) {
    fifo_.store(which, std::memory_order_relaxed);
    if (wants_wake(which) && claim_wake(area)) change(belled);
  }
  /// A neighbour claims the wake for a message of the first receive, and is stopped there.
  void neighbour_stops() {
    if (wants_wake(first)) static_cast<void>(claim_wake(area));
  }

  // --- an adapter ---------------------------------------------------------------------------

  void adapter_writes(std::uint32_t which) {
    fifo_.modify(0, which);
    if (adapter_.exchange(0, fenced) != 0) change(reported);
  }

  // --- the kernel ---------------------------------------------------------------------------

  /// A message comes in.
  void arrive() { change(arrived); }
  void ring() {
    if (fault != Fault::never_rings) change(fault == Fault::ring_is_not_kept ? 0 : rung);
  }

  // --- MPI threads --------------------------------------------------------------------------

  void receive(std::uint32_t which = first) {
    leave([this, which] {
      const std::uint32_t before = receive_.modify(0, which);
      if ((unexpected_.modify(which, 0) & which) != 0)
        end_receives(which);
      else
        area.listed.store(before | which, std::memory_order_relaxed);
    });
  }
  /// @param which  first or second
  void send(std::uint32_t which) {
    leave([this, which] { sends_.modify(0, which | stale); });
  }
  /// Progress once inside MPI (MPI_Test).
  void progress() {
    lock();
    turns_.store(1, fenced);
    static_cast<void>(serve());
    static_cast<void>(interruption->put_off(0, overlap::InterruptLoop::nap_max_ns));
    unlock();
  }
  /// The application looks at its buffers, outside MPI.
  void await_receive() { Machine::current->step({StepKind::await_zero, receive_.cell()}); }
  void await_second() { Machine::current->step({StepKind::await_zero, second_open_.cell()}); }
  void await_sends() { Machine::current->step({StepKind::await_zero, sends_.cell()}); }
  void stop() { change(rung | stopped); }

  // --- the host of Interruption -------------------------------------------------------------

  bool stopping() const { return seen_stopped_; }
  /// Timers go off at any time.
  static std::uint64_t now_ns() { return 0; }
  bool sleep(Sleep sleep) {
    if (sleep.until == Sleep::Until::time && fault != Fault::naps_for_ever) {
      // Whoever is inside leaves again: the looks in between would only be refused.
      Machine::current->step({StepKind::await_zero, held_.cell()});
      return is_rung(kernel_.modify(rung, 0));
    }
    for (;;) {
      const std::uint32_t seen = kernel_.modify(rung, 0);
      if (is_rung(seen)) return true;
      if (sleep.until == Sleep::Until::arrival) {
        if ((kernel_.modify(belled, 0) & belled) != 0) return false;
        if ((seen & (arrived | reported)) != 0) return false;
      }
      Machine::current->step({StepKind::wait, kernel_.cell(), seen});
      if (fault == Fault::ring_is_not_kept) return true;
    }
  }
  bool try_lock() { return held_.exchange(1, fenced) == 0; }
  void unlock() { held_.store(0, fenced); }
  std::uint32_t turns() { return tests ? turns_.load(std::memory_order_relaxed) : 0; }
  bool wanted() {
    return receive_.load(fenced) != 0 || (way == Way::socket && sends_.load(fenced) != 0);
  }
  typename Interruption::Turn turn() {
    const bool moved = serve();
    const bool readable = way == Way::socket && (kernel_.load(fenced) & arrived) != 0;
    return {.moved = fault != Fault::one_turn && moved, .readable = readable};
  }
  void fence() {
    if (fault != Fault::no_poster_fence) area.barrier.modify(0, 0);
  }
  bool look_again(bool in_thread) {
    if (fault == (in_thread ? Fault::arms_blindly : Fault::posts_blindly)) return false;
    const bool arms = way == Way::network && in_thread;
    if (arms && fault != Fault::arms_too_late) arm();
    const bool moved = way != Way::socket && serve_fifo();
    if (arms && fault == Fault::arms_too_late) arm();
    return moved;
  }
  Atomic<overlap::Doze>& doze() { return area.doze; }
  bool is_stale() {
    return way == Way::socket && fault != Fault::never_stale && (sends_.load(fenced) & stale) != 0;
  }

  bool answers = false;  ///< what arrives is answered by data, as a sender answers a receiver
  bool tests = false;    ///< the application calls progress()
  const Way way;
  ModelArea area;
  std::optional<Interruption> interruption{*this};

 private:
  void lock() {
    while (!try_lock()) Machine::current->step({StepKind::await_zero, held_.cell()});
  }
  template <class Start>
  void leave(Start start) {
    lock();
    start();
    const bool rings = interruption->must_ring(true);
    if (rings) interruption->note_ring(interruption->ring_delay_ns());
    unlock();
    if (rings) ring();
  }
  bool wants_wake(std::uint32_t which) {
    using namespace overlap::node;
    const Envelope message{.tag = static_cast<std::int32_t>(which)};
    return decide_wake(area, message, 0) == WakeDecision::ring;
  }
  /// @returns  whether a message was there
  bool serve_fifo() {
    const std::uint32_t came = fifo_.load(std::memory_order_acquire);
    if (came == 0) return false;
    fifo_.modify(came, 0);
    const std::uint32_t waited = receive_.load(fenced);
    end_receives(came & waited);
    if ((came & ~waited) != 0) unexpected_.modify(0, came & ~waited);
    return true;
  }
  void arm() {
    kernel_.modify(reported, 0);
    adapter_.store(1, fenced);
  }
  void end_receives(std::uint32_t which) {
    receive_.modify(which, 0);
    area.listed.modify(which, 0);
    if ((which & second) != 0) second_open_.store(0, fenced);
  }
  void change(std::uint32_t bits) {
    kernel_.modify(0, bits);
    Machine::current->step({StepKind::wake_all, kernel_.cell()});
  }
  bool is_rung(std::uint32_t seen) {
    seen_stopped_ = (seen & stopped) != 0;
    return (seen & rung) != 0;
  }
  /// A turn of the event loop: what is to be sent at its beginning goes, then what has arrived is
  /// read; it ends the receive, or is answered by data that a later turn sends.
  bool serve() {
    if (way != Way::socket) return serve_fifo();
    const std::uint32_t sent = sends_.modify(first | second | stale, 0);
    const bool came = (kernel_.modify(arrived, 0) & arrived) != 0;
    if (came) receive_.store(0, fenced);
    if (came && answers) sends_.modify(0, first);
    return (sent & (first | second)) != 0 || came;
  }

  static constexpr std::uint32_t rung = 1, arrived = 2, stopped = 4, belled = 8, reported = 16;
  Cell kernel_{0};
  Cell held_{0};  ///< the progress lock
  Cell sends_{0};
  Cell receive_;
  Cell fifo_{0};
  Cell adapter_{0};
  Cell unexpected_{0};
  Cell second_open_{1};  ///< until the second receive has ended
  Cell turns_{0};
  bool seen_stopped_ = false;  ///< the thread's own
};

template <Fault fault>
using Script = std::function<void(World<fault>&)>;

/// @param outstanding  receives, from the start
///
/// Thread 0 is the interrupt thread, 1 the application, 2 the network, if anything arrives.
template <Fault fault>
Verdict explore(const Script<fault>& application, const Script<fault>& network = {},
                Way way = Way::socket, std::uint32_t outstanding = 0) {
  std::optional<World<fault>> world;
  const auto setup = [&] { world.emplace(outstanding, way); };
  std::vector<std::function<void()>> threads;
  threads.emplace_back([&] { world->interruption->run(); });
  threads.emplace_back([&] {
    application(*world);
    world->stop();
  });
  if (network) threads.emplace_back([&] { network(*world); });
  Machine machine(setup, threads, [&] { return true; });
  return machine.explore();
}

template <Fault fault>
Verdict one_message() {
  return explore<fault>(
      [](auto& world) {
        world.receive();
        world.await_receive();
      },
      [](auto& world) { world.arrive(); });
}
template <Fault fault>
Verdict one_answer() {
  return explore<fault>(
      [](auto& world) {
        world.answers = true;
        world.receive();
        world.await_receive();
        world.await_sends();
      },
      [](auto& world) { world.arrive(); });
}
/// Between the two the thread may be busy with the first, or parked.
template <Fault fault>
Verdict two_sends() {
  return explore<fault>([](auto& world) {
    world.send(world.first);
    world.send(world.second);
    world.await_sends();
  });
}
/// The thread may be armed for the receive, whose message never comes, when the send starts.
template <Fault fault>
Verdict send_beside_receive() {
  return explore<fault>([](auto& world) {
    world.receive();
    world.send(world.first);
    world.await_sends();
  });
}
/// A call that progresses is the last one for a long time; then the message comes.
template <Fault fault>
Verdict test_once() {
  return explore<fault>([](auto& world) {
    world.tests = true;
    world.receive();
    world.progress();
    world.arrive();
    world.await_receive();
  });
}

/// A message through shared memory, for a receive that is posted before, meanwhile or afterwards.
template <Fault fault>
Verdict neighbour() {
  return explore<fault>(
      [](auto& world) {
        world.receive();
        world.await_receive();
      },
      [](auto& world) { world.neighbour_sends(world.first); }, Way::shared);
}
/// The thread may be armed for another receive, whose message never comes, when this one is posted.
template <Fault fault>
Verdict two_receives() {
  return explore<fault>(
      [](auto& world) {
        world.receive(world.second);
        world.await_second();
      },
      [](auto& world) { world.neighbour_sends(world.second); }, Way::shared, World<fault>::first);
}

/// A neighbour claims the wake and never rings; the next call with a large message makes up for it.
template <Fault fault>
Verdict stopped_neighbour() {
  return explore<fault>(
      [](auto& world) {
        world.neighbour_stops();
        world.receive(world.second);
        world.neighbour_sends(world.second);
        world.await_second();
      },
      {}, Way::shared, World<fault>::first);
}

/// A message by an adapter, for a receive that is posted before, meanwhile or afterwards.
template <Fault fault>
Verdict adapter() {
  return explore<fault>(
      [](auto& world) {
        world.receive();
        world.await_receive();
      },
      [](auto& world) { world.adapter_writes(world.first); }, Way::network);
}
void check_holds(const Verdict& verdict) {
  INFO(verdict.states << " states, " << verdict.paths << " paths; the last one:\n"
                      << verdict.story);
  CHECK(verdict.outcome == Outcome::holds);
  CHECK(verdict.states > 100);
}

}  // namespace

TEST_CASE("messages and sends end while the application computes", "[interrupt][model][P4.3]") {
  check_holds(one_message<Fault::none>());
  check_holds(one_answer<Fault::none>());
  check_holds(two_sends<Fault::none>());
  check_holds(send_beside_receive<Fault::none>());
}

TEST_CASE("a call progresses and leaves its request outstanding", "[interrupt][model][P4.5]") {
  check_holds(test_once<Fault::none>());
}

TEST_CASE("a neighbour's message is seen while the application computes",
          "[interrupt][model][P4.4]") {
  check_holds(neighbour<Fault::none>());
  check_holds(two_receives<Fault::none>());
}

TEST_CASE("what an adapter reports is seen while the application computes",
          "[interrupt][model][P4.2]") {
  check_holds(adapter<Fault::none>());
}

TEST_CASE("a wake that is claimed and never rung", "[interrupt][model][P4.5]") {
  check_holds(stopped_neighbour<Fault::none>());
}

TEST_CASE("planted faults end in a request that waits for ever", "[interrupt][model]") {
  CHECK(one_message<Fault::never_rings>().outcome == Outcome::deadlock);
  CHECK(two_sends<Fault::ring_is_not_kept>().outcome == Outcome::deadlock);
  CHECK(send_beside_receive<Fault::never_stale>().outcome == Outcome::deadlock);
  CHECK(one_answer<Fault::one_turn>().outcome == Outcome::deadlock);
  CHECK(test_once<Fault::naps_for_ever>().outcome == Outcome::deadlock);
  CHECK(neighbour<Fault::no_sender_fence>().outcome == Outcome::deadlock);
  CHECK(neighbour<Fault::arms_blindly>().outcome == Outcome::deadlock);
  CHECK(two_receives<Fault::posts_blindly>().outcome == Outcome::deadlock);
  CHECK(two_receives<Fault::no_poster_fence>().outcome == Outcome::deadlock);
  CHECK(stopped_neighbour<Fault::never_rings>().outcome == Outcome::deadlock);
  CHECK(adapter<Fault::arms_blindly>().outcome == Outcome::deadlock);
  CHECK(adapter<Fault::arms_too_late>().outcome == Outcome::deadlock);
}

#endif
