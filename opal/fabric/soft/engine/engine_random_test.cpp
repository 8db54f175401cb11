// Random programs on random wires.
// SPDX-License-Identifier: BSD-3-Clause
#include <random>

#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

// Random programs on random wires. Invariants: every request completes once and in order; receives
// complete in the order of their sends; after a death nobody touches its memory; in the end the
// engine has nothing left to do.
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
