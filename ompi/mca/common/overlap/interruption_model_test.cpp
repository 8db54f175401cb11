// The interrupt thread's own code, a call that leaves MPI and what arrives, in every order.
// SPDX-License-Identifier: BSD-3-Clause
#include <optional>

#include "ompi/mca/common/overlap/sim/interruption_world.hpp"
#include "test/support/catch.hpp"

#if !defined(__SANITIZE_THREAD__)  // it cannot follow the fibers, and here is only one thread

namespace {

using overlap::sim::Fault;
using overlap::sim::Way;
using overlap::sim::World;
using overlap::tso::Machine;
using overlap::tso::Outcome;
using overlap::tso::Verdict;

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

/// Of a message beside a window.
enum class When : std::uint8_t {
  before,
  beside,
  after,
  any  ///< at any moment, also within the calls that begin and end it
};

/// A message comes by itself.
template <Fault fault>
void come(World<fault>& world, Way way) {
  if (way == Way::socket) world.arrive();
  if (way == Way::shared) world.neighbour_sends(world.first);
  if (way == Way::network) world.adapter_writes(world.first);
}

template <Fault fault>
Verdict window(Way way, When when) {
  const Script<fault> application = [way, when](auto& world) {
    world.makes_windows = true;
    if (when == When::before) come(world, way);
    world.begin_window();
    if (when == When::beside) come(world, way);
    world.call_window();
    world.end_window();
    if (when == When::after) come(world, way);
    world.await_receive();
  };
  Script<fault> network;
  if (when == When::any) network = [way](auto& world) { come(world, way); };
  return explore<fault>(application, network, way, World<fault>::first);
}
/// The thread may be armed for another receive when a message comes beside a window, and then its
/// receive.
template <Fault fault>
Verdict receive_beside_window() {
  return explore<fault>(
      [](auto& world) {
        world.makes_windows = true;
        world.begin_window();
        world.neighbour_sends(world.second);
        world.receive(world.second);
        world.end_window();
        world.await_second();
      },
      {}, Way::shared, World<fault>::first);
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

TEST_CASE("a message beside a window of another component", "[interrupt][model][P4.3]") {
  check_holds(window<Fault::none>(Way::shared, When::any));
  for (const Way way : {Way::socket, Way::network})
    for (const When when : {When::before, When::beside, When::after})
      check_holds(window<Fault::none>(way, when));
  check_holds(receive_beside_window<Fault::none>());
}

TEST_CASE("a window that begins without the lock finds the thread inside a BTL",
          "[interrupt][model][P4.3]") {
  CHECK(window<Fault::begins_unlocked>(Way::socket, When::before).outcome == Outcome::two_inside);
  CHECK(window<Fault::begins_unlocked>(Way::shared, When::before).outcome == Outcome::two_inside);
  CHECK(window<Fault::begins_unlocked>(Way::network, When::before).outcome == Outcome::two_inside);
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
  CHECK(window<Fault::ends_quietly>(Way::socket, When::beside).outcome == Outcome::deadlock);
  CHECK(window<Fault::ends_quietly>(Way::shared, When::beside).outcome == Outcome::deadlock);
  CHECK(window<Fault::ends_quietly>(Way::network, When::beside).outcome == Outcome::deadlock);
  CHECK(receive_beside_window<Fault::forgets_fresh>().outcome == Outcome::deadlock);
}

#endif
