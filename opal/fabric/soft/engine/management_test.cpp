// Management queues: waits, enables, their time and their failures.
// SPDX-License-Identifier: BSD-3-Clause
#include "management.hpp"

#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

namespace {

constexpr Time message = 5200;  ///< one without bytes, from its start to its arrival
constexpr Time task = 70;

Command wait_for(std::uint32_t number, std::uint32_t index) {
  Command command;
  command.kind = Command::Kind::wait;
  command.number = number;
  command.index = index;
  return command;
}
Command enable_of(const Queue& queue, std::uint32_t index,
                  Command::Kind kind = Command::Kind::send_enable) {
  Command command;
  command.kind = kind;
  command.number = queue.number;
  command.index = index;
  return command;
}

/// What arrives at b from a is counted by `from_a`; b has managed sends to c, and a management
/// queue.
struct Relay {
  Relay() {
    b.client->task_ns = task;
    ab.pair->peer->receive_completions = b.counting.at(from_a - 1);
    bc.pair->managed = true;
    for (std::uint64_t i = 0; i < 8; ++i) {
      machine.post_receive(b, i, 0, 0);
      machine.post_receive(c, i, 0, 0);
    }
  }
  static WorkRequest signal(std::uint64_t id) {
    WorkRequest request;
    request.id = id;
    request.opcode = Opcode::write_with_immediate;
    request.signalled = true;
    return request;
  }
  void send_from_a() { machine.post(ab, signal(1)); }
  [[nodiscard]] std::size_t arrived_at_c() const { return c.seen.size(); }

  Machine machine;
  Process& a = machine.add(0, settings);
  Process& b = machine.add(1, settings);
  Process& c = machine.add(2, settings);
  std::uint32_t from_a = machine.add_counting(b);
  Queue& ab = machine.connect(a, b);
  Queue& bc = machine.connect(b, c);
  Lists& lists = machine.add_lists(b);
};

}  // namespace

TEST_CASE("A managed send leaves when the wait before its enable is over",
          "[soft][engine][management]") {
  Relay relay;
  relay.machine.post(relay.bc, Relay::signal(2));
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1), enable_of(relay.bc, 1)}, 77);
  relay.machine.run_until(1000);
  relay.send_from_a();
  relay.machine.run_until(1000 + message);
  REQUIRE(relay.lists.seen.empty());
  relay.machine.run();
  REQUIRE(relay.arrived_at_c() == 1);
  CHECK(relay.c.seen[0].at == 1000 + message + 2 * task + message);
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.lists.seen[0].at == 1000 + message + 2 * task);
  CHECK(relay.lists.seen[0].completion.id == 77);
  CHECK(relay.lists.seen[0].completion.status == CompletionStatus::success);
  CHECK(relay.b.notified.size() == 1);  // a thread that sleeps is woken
  CHECK(relay.machine.engine.next_wake() == never);
}

TEST_CASE("What came before the wait counts, and nothing counts twice",
          "[soft][engine][management]") {
  Relay relay;
  relay.send_from_a();
  relay.machine.run();
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1)}, 1);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1)}, 2);  // the same base
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 2)}, 3);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 2);
  CHECK(relay.lists.seen[1].at == relay.lists.seen[0].at + task);
  relay.send_from_a();
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 3);
  CHECK(relay.b.seen.empty());  // nothing of it can be polled
}

TEST_CASE("Lists are executed in order, another queue's independently",
          "[soft][engine][management]") {
  Relay relay;
  Lists& other = relay.machine.add_lists(relay.b);
  relay.machine.post(relay.bc, Relay::signal(1));
  relay.machine.post(relay.bc, Relay::signal(2));
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 5)}, 1);
  relay.machine.post(relay.lists, {enable_of(relay.bc, 2)}, 2);
  relay.machine.post(other, {enable_of(relay.bc, 1)}, 3);
  relay.machine.run();
  CHECK(relay.lists.seen.empty());  // a wait for more than comes never ends
  CHECK(other.seen.size() == 1);
  CHECK(relay.arrived_at_c() == 1);
  CHECK(relay.machine.engine.next_wake() == never);
}

TEST_CASE("Indices of waits and enables wrap", "[soft][engine][management]") {
  Relay relay;
  Completions& queue = *relay.b.counting[0];
  queue.counted = 0x1fffffe;
  relay.bc.pair->retired = relay.bc.pair->started = relay.bc.pair->enabled_end = 0x2fffe;
  for (std::uint64_t id = 1; id <= 4; ++id) relay.machine.post(relay.bc, Relay::signal(id));
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 0xffffff), enable_of(relay.bc, 0xffff)},
                     1);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1), enable_of(relay.bc, 1)}, 2);
  relay.machine.run();
  REQUIRE(relay.lists.seen.empty());
  relay.send_from_a();
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.arrived_at_c() == 1);
  relay.send_from_a();
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  relay.send_from_a();
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 2);
  CHECK(relay.arrived_at_c() == 3);
  relay.machine.post(relay.lists, {enable_of(relay.bc, 1)}, 3);  // has been enabled
  relay.machine.run();
  CHECK(relay.arrived_at_c() == 3);
}

TEST_CASE("A wait in a send queue holds back what is behind it", "[soft][engine][management]") {
  Relay relay;
  relay.bc.pair->managed = false;
  relay.machine.post(relay.bc, Relay::signal(1));
  relay.machine.post_wait(relay.bc, relay.from_a, 1);
  relay.machine.post(relay.bc, Relay::signal(2));
  relay.machine.run();
  REQUIRE(relay.arrived_at_c() == 1);
  const Time start = relay.machine.now;
  relay.send_from_a();
  // What is posted while the wait takes its time does not shorten it.
  relay.machine.run_until(start + message + task / 2);
  relay.machine.post(relay.bc, Relay::signal(3));
  relay.machine.run();
  REQUIRE(relay.arrived_at_c() == 3);
  CHECK(relay.c.seen[1].at == start + message + task + message);
  REQUIRE(relay.b.seen.size() == 3);  // the wait makes no completion
  CHECK(relay.b.seen[1].completion.id == 2);
}

TEST_CASE("Managed receives are taken when they are enabled", "[soft][engine][management]") {
  Relay relay;
  relay.b.receives->managed = true;
  Queue& ba = *relay.machine.queues[1];
  REQUIRE(ba.pair == relay.ab.pair->peer);
  relay.send_from_a();
  relay.send_from_a();
  relay.machine.run_until(10'000'000);
  REQUIRE(relay.a.seen.empty());
  relay.machine.post(relay.lists, {enable_of(ba, 1, Command::Kind::receive_enable)}, 1);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.a.seen.size() == 1);
  relay.machine.post(
      relay.lists, {enable_of(ba, 2, Command::Kind::receive_enable), wait_for(relay.from_a, 2)}, 2);
  relay.machine.run();
  CHECK(relay.lists.seen.size() == 2);
  CHECK(relay.a.seen.size() == 2);
}

TEST_CASE("A broken queue fails the list that waits, and flushes the others",
          "[soft][engine][management]") {
  Relay relay;
  relay.machine.post(relay.bc, Relay::signal(1));
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1)}, 1);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 2), enable_of(relay.bc, 1)}, 2);
  relay.machine.post(relay.lists, {enable_of(relay.bc, 1)}, 3);
  relay.send_from_a();
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  relay.machine.kill(relay.a);
  relay.machine.post(relay.lists, {enable_of(relay.bc, 1)}, 4);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 4);
  for (std::size_t i = 1; i < 4; ++i) {
    CHECK(relay.lists.seen[i].completion.id == i + 1);
    CHECK(relay.lists.seen[i].completion.status == CompletionStatus::flushed);
  }
  CHECK(relay.arrived_at_c() == 0);
}

TEST_CASE("What had been counted before the break is enough", "[soft][engine][management]") {
  Relay relay;
  relay.send_from_a();
  relay.machine.run();
  relay.machine.kill(relay.a);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1)}, 1);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 2)}, 2);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 2);
  CHECK(relay.lists.seen[0].completion.status == CompletionStatus::success);
  CHECK(relay.lists.seen[1].completion.status == CompletionStatus::flushed);
}

TEST_CASE("A failed send breaks the queue that counts it, with its status",
          "[soft][engine][management]") {
  Relay relay;
  const std::uint32_t sent = relay.machine.add_counting(relay.b);
  relay.bc.pair->completions = relay.b.counting.at(sent - 1);
  relay.bc.pair->faults.fail_next = CompletionStatus::remote_access_error;
  relay.machine.post(relay.bc, Relay::signal(1));
  relay.machine.post(relay.lists, {enable_of(relay.bc, 1), wait_for(sent, 1)}, 1);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.lists.seen[0].completion.status == CompletionStatus::remote_access_error);
  // Nobody polls that: the owner is told by an event.
  REQUIRE(relay.machine.told.size() >= 2);
  CHECK(relay.machine.told.back().pair == relay.bc.number);
  CHECK(relay.machine.told.back().event.kind == Event::Kind::peer_lost);
  // Sends of a failed queue pair are flushed when they are enabled.
  relay.machine.post(relay.bc, Relay::signal(2));
  CHECK(relay.machine.counts == 1);
}

TEST_CASE("A wait in a send queue fails its queue pair when the other queue breaks",
          "[soft][engine][management]") {
  Relay relay;
  relay.bc.pair->managed = false;
  relay.machine.post_wait(relay.bc, relay.from_a, 1);
  relay.machine.post(relay.bc, Relay::signal(2));
  relay.machine.run();
  relay.machine.kill(relay.a);
  relay.machine.run();
  REQUIRE(relay.b.seen.size() == 2);
  CHECK(relay.b.seen[1].completion.id == 2);
  CHECK(relay.b.seen[1].completion.status == CompletionStatus::flushed);
  CHECK(relay.arrived_at_c() == 0);
}

TEST_CASE("Who names what is not there fails", "[soft][engine][management]") {
  Relay relay;
  const int what = GENERATE(0, 1, 2, 3);
  Command command = wait_for(99, 1);
  if (what == 1) {  // another process's
    relay.ab.pair->managed = true;
    relay.send_from_a();
    command = enable_of(relay.ab, 1);
  }
  if (what == 2) {
    relay.bc.pair->managed = false;
    command = enable_of(relay.bc, 1);
  }
  if (what == 3) command = enable_of(relay.bc, 1, Command::Kind::receive_enable);
  relay.machine.post(relay.lists, {command, command}, 1);
  relay.machine.run();
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.lists.seen[0].completion.status != CompletionStatus::success);
  CHECK(relay.arrived_at_c() == 0);
  CHECK(relay.a.seen.empty());
}

TEST_CASE("Queues go while somebody waits", "[soft][engine][management]") {
  Relay relay;
  Lists& other = relay.machine.add_lists(relay.b);
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1)}, 1);
  relay.machine.post(other, {wait_for(relay.from_a, 1)}, 2);
  relay.machine.run();
  relay.machine.engine.remove_manager(*other.manager, relay.machine.now);
  relay.ab.pair->peer->receive_completions = relay.b.completions;
  Completions& queue = *relay.b.counting[0];
  relay.b.counting[0] = nullptr;
  relay.machine.engine.remove_completions(queue, relay.machine.now);
  relay.machine.run();
  CHECK(other.seen.empty());
  REQUIRE(relay.lists.seen.size() == 1);
  CHECK(relay.lists.seen[0].completion.status == CompletionStatus::flushed);
}

TEST_CASE("A process ends with lists that wait", "[soft][engine][management]") {
  Relay relay;
  relay.machine.post(relay.bc, Relay::signal(1));
  relay.machine.post(relay.lists, {wait_for(relay.from_a, 1), enable_of(relay.bc, 1)}, 1);
  relay.machine.run_until(100);
  relay.send_from_a();
  relay.machine.kill(relay.b);
  relay.machine.run();
  CHECK(relay.lists.seen.empty());
  CHECK(relay.arrived_at_c() == 0);
  CHECK(relay.machine.engine.next_wake() == never);
}
