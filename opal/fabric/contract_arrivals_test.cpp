// The rule Arrivals of fabric.hpp: what wakes a thread that sleeps on a device's descriptor, and
// what does not.
//
// Quiet is never waited for: a later message that wakes nobody is sent, and when it has arrived the
// earlier one has done what it does.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_expect.hpp"

#include <fcntl.h>
#include <poll.h>

#include <atomic>
#include <thread>

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

namespace {

/// Sleep until the descriptor is readable, in vain for at most `timeout_ms`.
bool is_readable(const Device& device, int timeout_ms) {
  pollfd sleeper{device.arrival_descriptor(), POLLIN, 0};
  return ::poll(&sleeper, 1, timeout_ms) == 1;
}

bool wakes(const Endpoint& end) { return is_readable(*end.device, patience_s * 1000); }
bool stays_asleep(const Endpoint& end) { return !is_readable(*end.device, 0); }

bool can_wake(const Endpoint& end) { return end.device->arrival_descriptor() >= 0; }

/// Soft-RoCE makes no event for a send queue's entry that has failed: its completer posts all of
/// them as not solicited.
bool wakes_for_failures(const Endpoint& end) {
  return end.device->capabilities().name.rfind("rxe", 0) != 0;
}

/// A connection on which messages are sent one at a time.
struct Line {
  /// Send one empty message and take its receive completion.
  void bring(QueuePair& from, bool solicited, Opcode opcode = Opcode::send) {
    send(from, solicited, opcode);
    expect(link.b.next_completion(), 10);
  }
  void send(QueuePair& from, bool solicited, Opcode opcode = Opcode::send) {
    REQUIRE(link.b.receives->post(10, nullptr, 0, 0) == Status::done);
    WorkRequest message = request(opcode, {}, true, 1);
    message.solicited = solicited;
    post(from, message);
    expect(link.a.next_completion(), 1);
  }

  Link link;
};

}  // namespace

TEST_CASE("The descriptor of arrivals is not inherited and blocks nobody", "[contract][arrivals]") {
  Endpoint a(0);
  if (!can_wake(a)) return;
  REQUIRE((::fcntl(a.device->arrival_descriptor(), F_GETFD) & FD_CLOEXEC) != 0);
  REQUIRE((::fcntl(a.device->arrival_descriptor(), F_GETFL) & O_NONBLOCK) != 0);
  REQUIRE(stays_asleep(a));
  a.device->arm_arrivals();
  a.device->arm_arrivals();
  REQUIRE(stays_asleep(a));
}

TEST_CASE("A solicited message wakes, another one does not", "[contract][arrivals]") {
  const Opcode opcode = GENERATE(Opcode::send, Opcode::send_with_immediate);
  Line line;
  Endpoint& b = line.link.b;
  if (!can_wake(b)) return;
  for (int round = 0; round < 3; ++round) {
    b.device->arm_arrivals();
    line.bring(*line.link.ab, false, opcode);
    line.bring(*line.link.ab, false);
    REQUIRE(stays_asleep(b));
    line.send(*line.link.ab, true, opcode);
    REQUIRE(wakes(b));
    Completion completion;
    REQUIRE(b.completions->poll({&completion, 1}) == 1);  // a thread that is woken need not wait
    expect(completion, 10);
  }
  REQUIRE(stays_asleep(line.link.a));  // nobody has sent to it
}

TEST_CASE("One arm wakes once", "[contract][arrivals]") {
  Line line;
  Endpoint& b = line.link.b;
  if (!can_wake(b)) return;
  b.device->arm_arrivals();
  line.bring(*line.link.ab, true);
  REQUIRE(wakes(b));
  for (int more = 0; more < 3; ++more) line.bring(*line.link.ab, true);
  line.bring(*line.link.ab, false);
  b.device->arm_arrivals();  // takes back all that there is
  REQUIRE(stays_asleep(b));
  line.bring(*line.link.ab, false);
  line.bring(*line.link.ab, false);
  REQUIRE(stays_asleep(b));
  line.bring(*line.link.ab, true);
  REQUIRE(wakes(b));
}

TEST_CASE("What came before the device was armed wakes nobody", "[contract][arrivals]") {
  Line line;
  Endpoint& b = line.link.b;
  if (!can_wake(b)) return;
  for (int round = 0; round < 3; ++round) {
    line.bring(*line.link.ab, true);
    line.bring(*line.link.ab, true);
    line.bring(*line.link.ab, false);
    if (round == 0) REQUIRE(stays_asleep(b));  // never armed
    b.device->arm_arrivals();
    line.bring(*line.link.ab, false);
    line.bring(*line.link.ab, false);
    REQUIRE(stays_asleep(b));
    line.bring(*line.link.ab, true);
    REQUIRE(wakes(b));
  }
}

TEST_CASE("What is no message wakes nobody, whatever it is marked", "[contract][arrivals]") {
  Line line;
  Link& link = line.link;
  if (!can_wake(link.b)) return;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  link.a.device->arm_arrivals();
  link.b.device->arm_arrivals();
  for (const Opcode opcode : {Opcode::write, Opcode::read}) {
    WorkRequest asked = to(request(opcode, {from.part(0, 8)}, true, 2), into, 0);
    asked.solicited = true;
    post(*link.ab, asked);
    expect(link.a.next_completion(), 2);
  }
  line.bring(*link.ab, false);
  line.bring(*link.ab, false);
  REQUIRE(stays_asleep(link.a));  // completions of its own requests are no arrivals
  REQUIRE(stays_asleep(link.b));
}

TEST_CASE("All completion queues of a device are armed together", "[contract][arrivals]") {
  Line line;
  Link& link = line.link;
  Endpoint& b = link.b;
  if (!can_wake(b)) return;
  auto second = b.device->make_completion_queue(64);
  auto third = b.device->make_completion_queue(64);
  auto at_a = link.a.make_pair();
  auto at_b = b.device->make_queue_pair(
      {.completions = second.get(), .receives = b.receives.get(), .send_queue_entries = 16});
  link.join(*at_a, *at_b);
  const auto take_second = [&] {
    Completion completion;
    await("a completion of the second queue", [&] { return second->poll({&completion, 1}) == 1; });
    expect(completion, 10);
  };
  b.device->arm_arrivals();
  line.send(*at_a, true);
  REQUIRE(wakes(b));
  take_second();
  line.bring(*link.ab, true);  // the other queue's event is out as well, or still to come
  third.reset();               // a queue goes while others have events
  b.device->arm_arrivals();
  line.bring(*link.ab, true);
  REQUIRE(wakes(b));
  line.send(*at_a, true);
  take_second();
  // Both queues go with their events untaken: nothing hangs.
  at_b.reset();
  second.reset();
  b.device->arm_arrivals();
}

TEST_CASE("A completion queue that is made while the device is armed wakes, too",
          "[contract][arrivals]") {
  Line line;
  Link& link = line.link;
  Endpoint& b = link.b;
  if (!can_wake(b)) return;
  b.device->arm_arrivals();
  auto second = b.device->make_completion_queue(64);
  auto at_a = link.a.make_pair();
  auto at_b = b.device->make_queue_pair(
      {.completions = second.get(), .receives = b.receives.get(), .send_queue_entries = 16});
  link.join(*at_a, *at_b);  // takes the connection's events
  line.send(*at_a, true);
  REQUIRE(wakes(b));
  Completion completion;
  await("a completion of the second queue", [&] { return second->poll({&completion, 1}) == 1; });
  expect(completion, 10);
}

TEST_CASE("A request that fails wakes its poster", "[contract][arrivals]") {
  Line line;
  Link& link = line.link;
  if (!can_wake(link.a) || !wakes_for_failures(link.a)) return;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  line.bring(*link.ab, false);
  link.a.device->arm_arrivals();
  WorkRequest bad = to(request(Opcode::write, {from.part(0, 8)}, false, 3), into, 0);
  bad.remote_key ^= 0x5500U;
  post(*link.ab, bad);
  REQUIRE(wakes(link.a));
  Completion completion;
  REQUIRE(link.a.completions->poll({&completion, 1}) == 1);
  expect(completion, 3, CompletionStatus::remote_access_error);
}

TEST_CASE("The loss of a peer wakes a process with outstanding requests",
          "[contract][arrivals][fork]") {
  Child child([](const Child& parent) {
    Endpoint b(1);
    auto ba = b.make_pair();
    parent.tell(b.device->address());
    const Event asked = b.next_event();
    if (b.device->accept(asked.request, *ba) != Status::done ||
        b.next_event().kind != Event::Kind::established)
      return;
    static_cast<void>(parent.hear<char>());
  });
  Endpoint a(0);
  auto ab = a.make_pair();
  REQUIRE(a.device->connect(*ab, child.hear<Address>(), PrivateData{}) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  if (!can_wake(a) || !wakes_for_failures(a) || !a.device->capabilities().receive_not_ready) return;
  Memory memory(*a.device, 4096);
  a.device->arm_arrivals();
  post(*ab, request(Opcode::send, {memory.part(0, 8)}, true, 1));  // nobody takes it
  REQUIRE(stays_asleep(a));
  child.kill_and_wait();
  REQUIRE(wakes(a));
  REQUIRE(a.next_completion().status != CompletionStatus::success);
}

TEST_CASE("Events of a connection wake both of its processes", "[contract][arrivals]") {
  Endpoint a(0);
  Endpoint b(1);
  if (!can_wake(a)) return;
  auto ab = a.make_pair();
  auto ba = b.make_pair();
  b.device->arm_arrivals();
  REQUIRE(stays_asleep(b));
  REQUIRE(a.device->connect(*ab, b.device->address(), PrivateData{}) == Status::done);
  Event event;
  await("the request", [&] {
    // The steps before the request are the asking device's own, taken by its polls.
    static_cast<void>(a.device->poll_event(event));
    return is_readable(*b.device, 10);
  });
  const Event asked = b.next_event();
  REQUIRE(asked.kind == Event::Kind::connect_request);
  a.device->arm_arrivals();
  REQUIRE_FALSE(a.device->poll_event(event));
  REQUIRE(b.device->accept(asked.request, *ba) == Status::done);
  REQUIRE(wakes(a));
  REQUIRE(a.next_event().kind == Event::Kind::established);
  // An event that has been taken wakes nobody.
  REQUIRE(b.next_event().kind == Event::Kind::established);
  b.device->arm_arrivals();
  REQUIRE(stays_asleep(b));
  ab.reset();
  REQUIRE(wakes(b));
  REQUIRE(b.next_event().kind == Event::Kind::peer_lost);
}

TEST_CASE("A thread sleeps on the descriptor while another one uses the device",
          "[contract][arrivals]") {
  Line line;
  Endpoint& b = line.link.b;
  if (!can_wake(b)) return;
  for (int round = 0; round < 20; ++round) {
    b.device->arm_arrivals();
    std::atomic<bool> woken{false};
    std::jthread sleeper([&] { woken = wakes(b); });
    line.bring(*line.link.ab, false);
    line.bring(*line.link.ab, true);
    sleeper.join();
    REQUIRE(woken);
  }
}

TEST_CASE("A thread that arms, polls once more and then sleeps misses no message",
          "[contract][arrivals]") {
  constexpr std::uint32_t messages = 2000;
  Line line;
  Link& link = line.link;
  Endpoint& b = link.b;
  if (!can_wake(b)) return;
  // In groups, so that some come while the receiver is awake, arms or falls asleep.
  constexpr std::uint32_t group_max = 4;
  for (std::uint32_t i = 0; i < 2 * group_max; ++i)
    REQUIRE(b.receives->post(i, nullptr, 0, 0) == Status::done);
  std::atomic<std::uint32_t> taken{0};
  std::atomic<bool> missed{false};
  std::jthread receiver([&] {
    while (taken < messages) {
      Completion completion;
      const auto take_all = [&] {
        bool any = false;
        while (b.completions->poll({&completion, 1}) == 1) {
          missed = missed || completion.status != CompletionStatus::success ||
                   b.receives->post(0, nullptr, 0, 0) != Status::done;
          ++taken;
          any = true;
        }
        return any;
      };
      if (take_all()) continue;
      b.device->arm_arrivals();
      if (!take_all() && !wakes(b)) {
        missed = true;
        return;
      }
    }
  });
  std::uint32_t sent = 0;
  for (std::uint32_t group = 1; sent < messages && !missed; group = group % group_max + 1) {
    for (std::uint32_t i = 0; i < group && sent < messages; ++i, ++sent) {
      WorkRequest message = request(Opcode::send, {}, true, sent);
      message.solicited = true;
      if (link.ab->post(message) != Status::done ||
          link.a.next_completion().status != CompletionStatus::success)
        missed = true;
    }
    await("the group", [&] { return missed || taken >= sent; });
  }
  receiver.join();
  REQUIRE_FALSE(missed);
  REQUIRE(taken == messages);
}
