// Faults on command.
// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

TEST_CASE("A link that stays down ends in transport retries exceeded", "[soft][engine][faults]") {
  const bool comes_back = GENERATE(false, true);
  Two two;
  constexpr Time answer = 8'589'934'592;
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, 1), two.b, 0));
  two.machine.run_until(100'000);
  two.machine.engine.set_link(1, true, two.machine.now);
  two.machine.run_until(200'000);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, 2), two.b, 0));
  two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 1000, 3), two.b, 0));
  two.machine.run_until(200'000 + answer - 1);
  REQUIRE(two.a.seen.size() == 1);
  if (comes_back) {
    two.machine.engine.set_link(1, false, two.machine.now);
    two.machine.run();
    REQUIRE(two.a.seen.size() == 3);
    REQUIRE(two.a.seen[2].completion.status == CompletionStatus::success);
    return;
  }
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3);
  REQUIRE(two.a.seen[1].at == 200'000 + answer);
  REQUIRE(two.a.seen[1].completion.status == CompletionStatus::retry_exceeded);
  REQUIRE(two.a.seen[2].completion.status == CompletionStatus::flushed);
  REQUIRE(two.machine.told.back().event.kind == Event::Kind::peer_lost);
}

TEST_CASE("A torn message's last byte arrives alone, and what is behind it waits",
          "[soft][engine][faults]") {
  Two two;
  two.ab.pair->faults.tear_ns = 70'000;
  mark(two.a, 0, 100'000);
  const std::uint32_t bytes = GENERATE(2U, 1000U, 100'000U);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, bytes, 1), two.b, 0));
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1, 2), two.b, 200'000));
  const Time end = 200 + bytes + 5000;
  two.machine.run_until(end + 70'000 - 1);
  REQUIRE(arrived(two.b, bytes - 2));
  REQUIRE_FALSE(arrived(two.b, bytes - 1));
  REQUIRE_FALSE(arrived(two.b, 200'000));
  two.machine.run_until(end + 70'000);
  REQUIRE(arrived(two.b, bytes - 1));
  two.machine.run();
  REQUIRE(arrived(two.b, 200'000));
  REQUIRE(two.a.seen.size() == 2);
}

TEST_CASE("Connection requests are lost, late and stale on command", "[soft][engine][faults]") {
  Machine machine;
  Process& a = machine.add(0, settings);
  Process& b = machine.add(1, settings);
  Queue& first = machine.add_pair(a);
  Queue& second = machine.add_pair(a);
  b.client->lose_requests = 1;
  b.client->request_delay_ns = 1'000'000;
  REQUIRE(machine.engine.connect(*first.pair, b.id, PrivateData{}, machine.now));
  REQUIRE(machine.engine.connect(*second.pair, b.id, PrivateData{}, machine.now));
  machine.run_until(999'999);
  REQUIRE(machine.told.empty());
  machine.run_until(1'000'000);
  REQUIRE(machine.told.size() == 2);
  REQUIRE(machine.told[0].pair == first.number);
  REQUIRE(machine.told[0].event.kind == Event::Kind::unreachable);
  REQUIRE(machine.told[1].client == b.id);
  REQUIRE(machine.told[1].event.kind == Event::Kind::connect_request);
  Queue& accepting = machine.add_pair(b);
  REQUIRE(machine.engine.accept(machine.told[1].event.request, *accepting.pair));
  REQUIRE(machine.told.back().event.kind == Event::Kind::established);

  // Stale: its asker gives up before it arrives.
  Queue& third = machine.add_pair(a);
  REQUIRE(machine.engine.connect(*third.pair, b.id, PrivateData{}, machine.now));
  machine.engine.remove_pair(*third.pair, "given up", machine.now);
  machine.run();
  REQUIRE(machine.told.back().event.kind == Event::Kind::connect_request);
  Queue& in_vain = machine.add_pair(b);
  REQUIRE(machine.engine.accept(machine.told.back().event.request, *in_vain.pair));
  REQUIRE(machine.told.back().pair == in_vain.number);
  REQUIRE(machine.told.back().event.kind == Event::Kind::unreachable);
}

TEST_CASE("Faults on command: fail, stall, delay, link down", "[soft][engine][faults]") {
  Two two;
  Engine& engine = two.machine.engine;
  const auto write = [&](std::uint64_t id) {
    two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, id), two.b, 0));
  };
  const Time plain = 1200 + 10000;

  two.ab.pair->faults.delay_ns = 40'000;
  write(1);
  two.machine.run_until(100'000);
  REQUIRE(two.a.seen.at(0).at == plain + 40'000);
  two.ab.pair->faults.delay_ns = 0;

  engine.stall(*two.ab.pair, true, two.machine.now);
  write(2);
  two.machine.run_until(200'000);
  REQUIRE(two.a.seen.size() == 1);
  engine.stall(*two.ab.pair, false, two.machine.now);
  two.machine.run_until(300'000);
  REQUIRE(two.a.seen.at(1).at == 200'000 + plain);

  write(3);
  two.machine.run_until(300'600);
  engine.set_link(1, true, two.machine.now);  // half of it is on the wire
  two.machine.run_until(400'000);
  REQUIRE(two.a.seen.size() == 2);
  engine.set_link(1, false, two.machine.now);
  two.machine.run_until(500'000);
  REQUIRE(two.a.seen.at(2).at == 400'000 + 600 + 10'000);

  two.ab.pair->faults.fail_next = CompletionStatus::retry_exceeded;
  write(4);
  write(5);
  two.machine.run();
  REQUIRE(two.a.seen.at(3).completion.status == CompletionStatus::retry_exceeded);
  REQUIRE(two.a.seen.at(4).completion.status == CompletionStatus::flushed);
}

TEST_CASE("A stall holds what is under way, too", "[soft][engine][faults]") {
  Two two;
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, 1), two.b, 0));
  two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 1000, 2), two.b, 0));
  two.machine.run_until(6000);  // on their way
  two.machine.engine.stall(*two.ab.pair, true, two.machine.now);
  two.machine.run_until(100'000);
  REQUIRE(two.machine.ends == 0);
  two.machine.engine.stall(*two.ab.pair, false, two.machine.now);
  two.machine.run();
  REQUIRE(two.machine.ends == 2);
  REQUIRE(two.a.seen.size() == 2);
}
