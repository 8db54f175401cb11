// The engine in virtual time: when things become visible, and what waits for what.
// SPDX-License-Identifier: BSD-3-Clause
#include "engine.hpp"

#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

TEST_CASE("A write is visible when its wire time has passed, not a nanosecond earlier",
          "[soft][engine]") {
  Two two;
  mark(two.a, 0, 1000);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, 7), two.b, 0));
  two.machine.run_until(200 + 1000 + 5000 - 1);
  REQUIRE_FALSE(arrived(two.b, 0));
  two.machine.run_until(200 + 1000 + 5000);
  REQUIRE(arrived(two.b, 0));
  REQUIRE(arrived(two.b, 999));
  two.machine.run_until(200 + 1000 + 2 * 5000 - 1);
  REQUIRE(two.a.seen.empty());
  two.machine.run_until(200 + 1000 + 2 * 5000);
  REQUIRE(two.a.seen.size() == 1);
  REQUIRE(two.a.seen[0].completion.id == 7);
  REQUIRE(two.machine.wakes == 2);
}

TEST_CASE("A read takes a request and a response", "[soft][engine]") {
  Two two;
  mark(two.b, 0, 1000);
  two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 1000, 1), two.b, 0));
  const Time end = 200 + 5000 + 200 + 1000 + 5000;
  two.machine.run_until(end - 1);
  REQUIRE(two.a.seen.empty());
  REQUIRE_FALSE(arrived(two.a, 0));
  two.machine.run_until(end);
  REQUIRE(two.a.seen.size() == 1);
  REQUIRE(arrived(two.a, 999));
  REQUIRE(
      two.machine.wakes ==
      2);  // the response goes on the wire one latency before anybody can tell, and then its end
}

TEST_CASE("A solicited message notifies its receiver when it completes a receive entry",
          "[soft][engine]") {
  Two two;
  for (std::uint64_t id = 1; id <= 4; ++id) two.machine.post_receive(two.b, id, 0, 1000);
  for (std::uint64_t id = 1; id <= 4; ++id) {
    WorkRequest send = request(Opcode::send, two.a, 0, 1000, id);
    send.solicited = id % 2 == 0;
    two.machine.post(two.ab, send);
  }
  two.machine.run_until(2 * 1200 + 5000 - 1);
  REQUIRE(two.b.seen.size() == 1);
  REQUIRE(two.b.notified.empty());
  two.machine.run();
  REQUIRE(two.b.notified == std::vector<std::size_t>{2, 4});
  REQUIRE(two.a.seen.size() == 4);
  REQUIRE(two.a.notified.empty());
}

TEST_CASE("The requests that a broken connection flushes notify their poster", "[soft][engine]") {
  Two two;
  Queue& ba = *two.machine.queues[1];
  two.machine.post(two.ab, request(Opcode::send, two.a, 0, 8, 1));  // nobody takes them
  two.machine.post(ba, request(Opcode::send, two.b, 0, 8, 2, false));
  two.machine.run_until(1'000'000);
  REQUIRE(two.a.notified.empty());
  REQUIRE(two.b.notified.empty());
  two.machine.kill(two.b);
  REQUIRE(two.a.seen.size() == 1);
  REQUIRE(two.a.notified == std::vector<std::size_t>{1});
}

TEST_CASE("A request posted while the device slept starts when it was posted", "[soft][engine]") {
  Two two;
  Submission late;
  late.request = to(request(Opcode::write, two.a, 0, 8, 1), two.b, 0);
  late.posted = 1000;
  two.ab.posted.push_back(late);
  two.machine.now = 4000;  // noticed 3 us later
  two.machine.engine.ring(*two.ab.pair, two.machine.now);
  two.machine.run_until(1000 + 200 + 8 + 10000 - 1);
  REQUIRE(two.a.seen.empty());
  two.machine.run_until(1000 + 200 + 8 + 10000);
  REQUIRE(two.a.seen.size() == 1);
}

TEST_CASE("A large message wakes the device a few times, and arrives in pieces on time",
          "[soft][engine]") {
  Two two;
  constexpr std::uint32_t bytes = 4U << 20U;
  mark(two.a, 0, bytes);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, bytes, 1), two.b, 0));
  const Time end = 200 + bytes + 5000;
  for (int part = 1; part < 16; ++part) {
    const Time at = 200 + bytes / 16 * part + 5000;
    two.machine.run_until(at);
    REQUIRE_FALSE(
        arrived(two.b, static_cast<std::uint64_t>(bytes / 16 * part)));  // never before its time
  }
  REQUIRE(arrived(two.b, bytes / 2));
  two.machine.run_until(end - 1);
  REQUIRE_FALSE(arrived(two.b, bytes - 1));
  two.machine.run_until(end);
  REQUIRE(arrived(two.b, bytes - 1));
  REQUIRE(two.machine.ends == 1);
  REQUIRE(two.machine.wakes <= 16);
}

TEST_CASE("A small message does not wait behind a large one of another queue pair",
          "[soft][engine]") {
  Two two;
  Queue& other = two.machine.connect(two.a, two.b);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 4U << 20U, 1), two.b, 0));
  two.machine.run_until(100'000);
  mark(two.a, 6U << 20U, 8);
  two.machine.post(other, to(request(Opcode::write, two.a, 6U << 20U, 8, 2), two.b, 6U << 20U));
  const Time end = 100'000 + 2 * (200 + 8) + 5000;
  two.machine.run_until(end - 1);
  REQUIRE_FALSE(arrived(two.b, 6U << 20U));
  two.machine.run_until(end);
  REQUIRE(arrived(two.b, 6U << 20U));
  two.machine.run();
  REQUIRE(two.a.seen.size() == 2);
  // The large one lost what the small one took.
  REQUIRE(two.a.seen[1].at == 200 + (4 << 20) + 200 + 8 + 10000);
}

TEST_CASE(
    "One queue pair's messages go one after the other, and directions do not disturb each other",
    "[soft][engine]") {
  Two two;
  Queue& ba = two.machine.connect(two.b, two.a);
  for (std::uint64_t i = 0; i < 3; ++i)
    two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 10000, i), two.b, 0));
  two.machine.post(ba, to(request(Opcode::write, two.b, 0, 10000, 9), two.a, 20000));
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3);
  for (std::size_t i = 0; i < 3; ++i)
    REQUIRE(two.a.seen[i].at == static_cast<Time>((i + 1) * 10200 + 10000));
  REQUIRE(two.b.seen.at(0).at == 10200 + 10000);
}

TEST_CASE("The slower settings of both ends count", "[soft][engine]") {
  Machine machine;
  Process& a = machine.add(0, {.bytes_per_ns = 10, .latency_ns = 1000, .message_ns = 0});
  Process& b = machine.add(1, {.bytes_per_ns = 0.5, .latency_ns = 7000, .message_ns = 300});
  Queue& ab = machine.connect(a, b);
  machine.post(ab, to(request(Opcode::write, a, 0, 1000, 1), b, 0));
  machine.run();
  REQUIRE(a.seen.at(0).at == 300 + 2000 + 2 * 7000);
}

TEST_CASE("Processes of one node share its link; their talk goes through it", "[soft][engine]") {
  Machine machine;
  Process& a = machine.add(3, settings);
  Process& b = machine.add(3, settings);
  Process& c = machine.add(4, settings);
  Queue& ab = machine.connect(a, b);
  Queue& bc = machine.connect(b, c);
  machine.post(ab, to(request(Opcode::write, a, 0, 20000, 1), b, 0));
  machine.post(bc, to(request(Opcode::write, b, 0, 20000, 2), c, 0));
  machine.run();
  REQUIRE(a.seen.at(0).at == 2 * 20200 + 10000);
  REQUIRE(b.seen.at(0).at == 2 * 20200 + 10000);
}

TEST_CASE("A fence waits for reads and atomics, not for writes", "[soft][engine]") {
  Two two;
  two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 100000, 1), two.b, 0));
  WorkRequest write = to(request(Opcode::write, two.a, 200000, 8, 2), two.b, 200000);
  two.machine.post(two.ab, write);  // unfenced: overtakes the read's response
  write.fenced = true;
  write.id = 3;
  mark(two.a, 300000, 8);
  two.machine.post(two.ab, to(write, two.b, 300000));
  const Time read_end = 200 + 5000 + 200 + 100000 + 5000;
  two.machine.run_until(read_end + 208 + 5000 - 1);
  REQUIRE(two.a.seen.size() == 2);
  REQUIRE(two.a.seen[0].at == read_end);
  REQUIRE(two.a.seen[1].at == read_end);  // in order: the write was done long before
  REQUIRE(two.machine.ends == 2);
  two.machine.run_until(read_end + 208 + 5000);
  REQUIRE(two.machine.ends == 3);
}

TEST_CASE("No more reads are under way than the depth", "[soft][engine]") {
  Two two;
  for (std::uint64_t i = 0; i < 3 * read_depth; ++i)
    two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 100, i), two.b, 0));
  for (Time at = 0; at < 100'000; at += 100) {
    two.machine.run_until(at);
    REQUIRE(two.ab.pair->outstanding_reads <= read_depth);
  }
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3 * read_depth);
}
