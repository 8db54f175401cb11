// The engine in virtual time: when things become visible, what waits for what, and what faults do.
#include "engine.hpp"

#include <random>

#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

namespace {

// 1 byte per ns, 5 us one way, 200 ns per message.
constexpr WireSettings settings{};

struct Two {
  Machine machine;
  Process& a = machine.add(0, settings, 8U << 20U);
  Process& b = machine.add(1, settings, 8U << 20U);
  Queue& ab = machine.connect(a, b);
};

bool arrived(const Process& process, std::uint64_t offset) {
  return process.memory[offset] != std::byte{0};
}

void mark(Process& process, std::uint64_t offset, std::size_t bytes, int value = 1) {
  std::fill_n(process.memory.begin() + static_cast<std::ptrdiff_t>(offset), bytes,
              static_cast<std::byte>(value));
}

}  // namespace

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
    REQUIRE(two.ab.pair->reads_under_way <= read_depth);
  }
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3 * read_depth);
}

TEST_CASE("Senders wait for receive entries in the order in which they came", "[soft][engine]") {
  Machine machine;
  Process& a = machine.add(0, settings);
  Process& b = machine.add(1, settings);
  Process& c = machine.add(2, settings);
  Queue& ac = machine.connect(a, c);
  Queue& bc = machine.connect(b, c);
  machine.post(ac, request(Opcode::send, a, 0, 8, 1));
  machine.run_until(1000);
  machine.post(bc, request(Opcode::send, b, 0, 8, 2));
  machine.post(ac, to(request(Opcode::write, a, 0, 8, 3), c, 0));
  mark(a, 0, 8);
  machine.run_until(50'000);
  REQUIRE(c.seen.empty());
  REQUIRE_FALSE(arrived(c, 0));  // not even the write behind the send
  machine.post_receive(c, 10, 100, 8);
  machine.run_until(60'000);
  REQUIRE(c.seen.size() == 1);
  REQUIRE(c.seen[0].at == 50'000);
  REQUIRE(c.seen[0].completion.queue_pair_number == ac.pair->peer->number);
  REQUIRE(arrived(c, 0));
  machine.post_receive(c, 11, 200, 8);
  machine.run();
  REQUIRE(c.seen.size() == 2);
  REQUIRE(c.seen[1].completion.queue_pair_number == bc.pair->peer->number);
}

TEST_CASE("An error completes in order and flushes what is behind it; the peer is told",
          "[soft][engine]") {
  Two two;
  two.machine.post(two.ab, to(request(Opcode::read, two.a, 0, 100000, 1), two.b, 0));
  WorkRequest bad = to(request(Opcode::write, two.a, 0, 8, 2, false), two.b, 0);
  bad.remote_key ^= 1U << 8U;
  two.machine.post(two.ab, bad);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, 3, false), two.b, 0));
  mark(two.a, 0, 8);
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3);
  REQUIRE(two.a.seen[0].completion.status == CompletionStatus::success);
  REQUIRE(two.a.seen[1].completion.status == CompletionStatus::remote_access_error);
  REQUIRE(two.a.seen[2].completion.status == CompletionStatus::flushed);
  REQUIRE_FALSE(arrived(two.b, 0));
  REQUIRE(two.machine.told.back().client == two.b.id);
  REQUIRE(two.machine.told.back().event.kind == Event::Kind::peer_lost);
  // Posted when nobody knew yet.
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, 4, false), two.b, 0));
  REQUIRE(two.a.seen.back().completion.id == 4);
  REQUIRE(two.a.seen.back().completion.status == CompletionStatus::flushed);
}

TEST_CASE("A local fault does not disturb what was posted before it", "[soft][engine]") {
  Two two;
  mark(two.a, 0, 8);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, 1, false), two.b, 0));
  WorkRequest bad = to(request(Opcode::write, two.a, 0, 8, 2), two.b, 0);
  bad.gather[0].local_key = 0;
  two.machine.post(two.ab, bad);
  two.machine.run();
  REQUIRE(arrived(two.b, 0));
  REQUIRE(two.a.seen.size() == 1);
  REQUIRE(two.a.seen[0].completion.id == 2);
  REQUIRE(two.a.seen[0].completion.status == CompletionStatus::protection_error);
}

TEST_CASE("Memory that is deregistered in the middle of a transfer is not touched again",
          "[soft][engine]") {
  const bool target = GENERATE(true, false);
  Two two;
  constexpr std::uint32_t bytes = 4U << 20U;
  mark(two.a, 0, bytes);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, bytes, 1), two.b, 0));
  two.machine.run_until(bytes / 2 + 100'000);
  const std::uint64_t before = two.machine.copies;
  REQUIRE(before > 0);
  two.machine.engine.regions().remove(target ? two.b.key : two.a.key);
  two.machine.run();
  REQUIRE(two.machine.copies == before);
  REQUIRE(two.a.seen.at(0).completion.status ==
          (target ? CompletionStatus::remote_access_error : CompletionStatus::protection_error));
}

TEST_CASE("The death of a process in the middle of transfers ends them at its peers",
          "[soft][engine]") {
  Two two;
  Queue& ba = two.machine.connect(two.b, two.a);
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 4U << 20U, 1), two.b, 0));
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, 2, false), two.b, 0));
  two.machine.post(ba, to(request(Opcode::read, two.b, 0, 4U << 20U, 3), two.a, 0));
  Process& c = two.machine.add(2, settings);
  Queue& cb = two.machine.add_pair(c);
  REQUIRE(two.machine.engine.connect(*cb.pair, two.b.id, PrivateData{}));
  two.machine.run_until(2'500'000);
  two.machine.told.clear();
  two.machine.kill(two.b);
  two.machine.run();
  REQUIRE_FALSE(two.machine.touched_dead);
  REQUIRE(two.a.seen.size() == 2);
  REQUIRE(two.a.seen[0].completion.status == CompletionStatus::flushed);
  REQUIRE(two.a.seen[1].completion.status == CompletionStatus::flushed);
  std::size_t lost = 0;
  std::size_t unreachable = 0;
  for (const Told& told : two.machine.told) {
    lost += told.client == two.a.id && told.event.kind == Event::Kind::peer_lost &&
                    told.event.why == "the peer process ended"
                ? 1
                : 0;
    unreachable += told.client == c.id && told.event.kind == Event::Kind::unreachable ? 1 : 0;
  }
  REQUIRE(lost == 2);
  REQUIRE(unreachable == 1);
  REQUIRE(two.machine.engine.next_wake() == never);
}

TEST_CASE("A process that dies before the device knows fails nobody with the wrong words",
          "[soft][engine]") {
  Two two;
  two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, 1), two.b, 0));
  two.b.alive = false;  // its memory is gone, its socket is not yet read
  two.machine.run_until(1'000'000);
  REQUIRE(two.a.seen.empty());
  two.machine.kill(two.b);
  REQUIRE(two.a.seen.at(0).completion.status == CompletionStatus::flushed);
  REQUIRE(two.machine.told.back().client == two.a.id);
  REQUIRE(two.machine.told.back().event.kind == Event::Kind::peer_lost);
}

TEST_CASE("Faults on command: fail, stall, delay, link down", "[soft][engine][faults]") {
  Two two;
  Engine& engine = two.machine.engine;
  const auto write = [&](std::uint64_t id) {
    two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 1000, id), two.b, 0));
  };
  const Time plain = 1200 + 10000;

  engine.delay(*two.ab.pair, 40'000);
  write(1);
  two.machine.run_until(100'000);
  REQUIRE(two.a.seen.at(0).at == plain + 40'000);
  engine.delay(*two.ab.pair, 0);

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

  engine.fail_next(*two.ab.pair, CompletionStatus::retry_exceeded);
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

// Random programs on random wires. Invariants: every request completes once and in order; receives complete in the order of their sends;
// after a death nobody touches its memory; in the end the engine has nothing left to do.
TEST_CASE("Random walks keep order, count and bounds", "[soft][engine][random]") {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto below = [&](std::uint32_t bound) {
      return static_cast<std::uint32_t>(random() % bound);
    };
    Machine machine;
    const std::uint32_t count = 2 + below(4);
    for (std::uint32_t i = 0; i < count; ++i) {
      machine.add(below(3),
                  {.bytes_per_ns = 0.1 + below(50) / 10.0,
                   .latency_ns = below(3) * 4000,
                   .message_ns = below(3) * 100},
                  1U << 18U);
    }
    struct Sent {
      Queue* queue;
      Process* from;
      Process* to;
      std::vector<std::uint64_t> ids;
    };
    std::vector<Sent> sent;
    for (std::uint32_t i = 0; i < 6; ++i) {
      Process& from = *machine.processes[below(count)];
      Process& target = *machine.processes[below(count)];
      sent.push_back({&machine.connect(from, target), &from, &target, {}});
    }
    Process* dead = nullptr;
    std::uint64_t id = 1;
    for (int step = 0; step < 300; ++step) {
      machine.run_until(machine.now + below(20000));
      Sent& one = sent[below(static_cast<std::uint32_t>(sent.size()))];
      if (one.to->alive) machine.post_receive(*one.to, 0, 0, 1U << 18U);
      if (!one.from->alive) continue;
      constexpr Opcode opcodes[] = {Opcode::send, Opcode::write, Opcode::read,
                                    Opcode::write_with_immediate};
      const std::uint32_t bytes = below(10) == 0 ? below(1U << 18U) : below(2000);
      WorkRequest work = to(request(opcodes[below(4)], *one.from, 0, bytes, id, true), *one.to, 0);
      work.fenced = below(5) == 0;
      if (below(300) == 0) work.remote_key = 0;
      one.ids.push_back(id++);
      machine.post(*one.queue, work);
      if (seed % 3 == 0 && step == 200) {
        dead = one.to;
        machine.kill(*one.to);
      }
    }
    for (int i = 0; i < 2000; ++i) {
      for (auto& process : machine.processes) {
        if (process->alive) machine.post_receive(*process, 0, 0, 1U << 18U);
      }
    }
    machine.run();
    REQUIRE_FALSE(machine.touched_dead);
    REQUIRE(machine.engine.next_wake() == never);
    for (const Sent& one : sent) {
      if (one.from == dead) continue;
      std::vector<std::uint64_t> seen;
      bool failed = false;
      for (const Seen& entry : one.from->seen) {
        if (entry.completion.queue_pair_number != one.queue->number ||
            entry.completion.opcode == Opcode::receive)
          continue;
        seen.push_back(entry.completion.id);
        if (failed) REQUIRE(entry.completion.status == CompletionStatus::flushed);
        failed |= entry.completion.status != CompletionStatus::success;
      }
      REQUIRE(seen == one.ids);
    }
  }
}
