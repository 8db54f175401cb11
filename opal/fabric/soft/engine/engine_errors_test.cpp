// What errors do: to the request, to what is posted behind it, to the peer.
// SPDX-License-Identifier: BSD-3-Clause
#include "model.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::soft;
using namespace overlap::fabric::soft::model;

TEST_CASE("A message that finds no receive entry is sent again after the receiver's time",
          "[soft][engine]") {
  Machine machine;
  Process& a = machine.add(0, settings);
  Process& b = machine.add(1, settings);
  Process& c = machine.add(2, settings);
  Queue& ac = machine.connect(a, c);
  Queue& bc = machine.connect(b, c);
  constexpr Time first = 200 + 8 + 5000, between = 640'000 + 2 * 5000;
  machine.post(ac, request(Opcode::send, a, 0, 8, 1));
  machine.run_until(1000);
  machine.post(bc, request(Opcode::send, b, 0, 8, 2));
  machine.post(ac, to(request(Opcode::write, a, 0, 8, 3), c, 0));
  mark(a, 0, 8);
  machine.run_until(50'000);
  REQUIRE(c.seen.empty());
  REQUIRE_FALSE(arrived(c, 0));  // not even the write behind the send
  machine.post_receive(c, 10, 100, 8);
  machine.run_until(first + between - 1);
  REQUIRE(c.seen.empty());
  machine.run_until(first + between + 2000);
  REQUIRE(c.seen.size() == 1);
  REQUIRE(c.seen[0].at == first + between);
  REQUIRE(c.seen[0].completion.queue_pair_number == ac.pair->peer->number);
  REQUIRE(arrived(c, 0));
  machine.run_until(first + 5 * between);
  REQUIRE(machine.wakes < 30);  // tries that must be in vain cost nothing
  machine.post_receive(c, 11, 200, 8);
  machine.run();
  REQUIRE(c.seen.size() == 2);
  // It shared the link with the write: both took twice as long.
  REQUIRE(c.seen[1].at == 1000 + first + 200 + 8 + 5 * between);
  REQUIRE(c.seen[1].completion.queue_pair_number == bc.pair->peer->number);
}

TEST_CASE("The tries for a receive entry end where they are limited", "[soft][engine]") {
  const std::uint32_t retries = GENERATE(0U, 3U);
  const bool in_time = GENERATE(false, true);
  Machine machine;
  RetrySettings limited;
  limited.receive_retries = retries;
  Process& a = machine.add(0, settings, 1U << 16U, access::any, limited);
  Process& c = machine.add(2, settings);
  Queue& ac = machine.connect(a, c);
  constexpr Time first = 200 + 8 + 5000, between = 640'000 + 2 * 5000;
  machine.post(ac, request(Opcode::send, a, 0, 8, 1));
  machine.post(ac, to(request(Opcode::write, a, 0, 8, 2, false), c, 0));
  const Time last = first + retries * between;
  machine.run_until(last - 1);
  REQUIRE(a.seen.empty());
  if (in_time) machine.post_receive(c, 10, 100, 8);
  machine.run();
  if (in_time && retries > 0) {
    REQUIRE(c.seen.at(0).at == last);
    REQUIRE(a.seen.at(0).completion.status == CompletionStatus::success);
    return;
  }
  if (retries == 0 && in_time) return;  // it was there at the first try
  REQUIRE(a.seen.size() == 2);
  REQUIRE(a.seen[0].at == last + 5000);
  REQUIRE(a.seen[0].completion.status == CompletionStatus::receive_not_ready_exceeded);
  REQUIRE(a.seen[1].completion.status == CompletionStatus::flushed);
  REQUIRE(machine.told.back().client == c.id);
  REQUIRE(machine.told.back().event.kind == Event::Kind::peer_lost);
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
  REQUIRE(two.machine.engine.connect(*cb.pair, two.b.id, PrivateData{}, two.machine.now));
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

TEST_CASE("A receive entry that an unfinished message has taken comes back flushed",
          "[soft][engine]") {
  const bool receiver_goes = GENERATE(true, false);
  Two two;
  constexpr std::uint32_t bytes = 4U << 20U;
  two.machine.post_receive(two.b, 10, 0, bytes);
  two.machine.post(two.ab, request(Opcode::send, two.a, 0, bytes, 1, false));
  two.machine.post(two.ab, request(Opcode::send, two.a, 0, 8, 2));
  two.machine.run_until(bytes / 2 + 100'000);
  REQUIRE(two.b.posted.empty());
  REQUIRE(two.b.seen.empty());
  Pair& leaving = receiver_goes ? *two.ab.pair->peer : *two.ab.pair;
  two.machine.engine.remove_pair(leaving, "gone", two.machine.now);
  REQUIRE(two.b.seen.size() == 1);
  REQUIRE(two.b.seen[0].completion.id == 10);
  REQUIRE(two.b.seen[0].completion.status == CompletionStatus::flushed);
  REQUIRE(two.a.seen.size() == 2);  // none of them had ended
  REQUIRE(two.a.seen[1].completion.id == 2);
  REQUIRE(two.a.seen[1].completion.status == CompletionStatus::flushed);
  two.machine.run();
  REQUIRE(two.a.seen.size() == 2);
  REQUIRE(two.b.seen.size() == 1);
}

TEST_CASE("An overflow of a completion queue fails its queue pairs at both ends",
          "[soft][engine]") {
  Two two;
  Queue& other = two.machine.connect(two.a, two.b);
  two.a.completion_entries = 3;
  two.machine.told.clear();
  for (std::uint64_t id = 1; id <= 3; ++id)
    two.machine.post(two.ab, to(request(Opcode::write, two.a, 0, 8, id), two.b, 0));
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3);
  REQUIRE(two.machine.told.empty());
  two.machine.post(other, to(request(Opcode::write, two.a, 0, 8, 4), two.b, 0));
  two.machine.run();
  REQUIRE(two.a.seen.size() == 3);
  REQUIRE(two.machine.told.size() == 4);
  for (const Told& told : two.machine.told) {
    REQUIRE(told.event.kind == Event::Kind::peer_lost);
    REQUIRE(told.event.why.find("completion queue overflowed") != std::string::npos);
  }
}
