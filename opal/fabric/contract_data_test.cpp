// The rules of fabric.hpp for data: sends, writes, reads, fences, atomics.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_expect.hpp"

#include <algorithm>
#include <cerrno>

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

// --- Sends -----------------------------------------------------------------------------

TEST_CASE("Sends fill receive entries in order", "[contract][send]") {
  const bool backed = GENERATE(false, true);
  Link link;
  constexpr std::size_t room = 9000;
  constexpr std::uint32_t count = 40;
  Memory from(*link.a.device, room * count, backed);
  Memory into(*link.b.device, room * count, backed);
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(link.b.receives->post(100 + i, into.at(room * i), room, into.region().local_key) ==
            Status::done);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t bytes = (i * 733U) % room;  // the first one is empty
    fill(from.at(room * i), bytes, i);
    WorkRequest send = request(i % 2 == 0 ? Opcode::send : Opcode::send_with_immediate,
                               {from.part(room * i, bytes)}, true, i);
    send.immediate = 7000 + i;
    post(*link.ab, send);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const Completion received = link.b.next_completion();
    expect(received, 100 + i);
    REQUIRE(received.opcode == Opcode::receive);
    REQUIRE(received.bytes == (i * 733U) % room);
    REQUIRE(received.has_immediate == (i % 2 == 1));
    if (received.has_immediate) REQUIRE(received.immediate == 7000 + i);
    REQUIRE(received.queue_pair_number == link.ba->number());
    REQUIRE(has(into.at(room * i), received.bytes, i));
    const Completion sent = link.a.next_completion();
    expect(sent, i);
    REQUIRE(sent.queue_pair_number == link.ab->number());
  }
}

TEST_CASE("A send without a receive entry waits for one", "[contract][send]") {
  Link link;
  if (!link.a.device->capabilities().receive_not_ready) return;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  fill(from.at(0), 200, 3);
  post(*link.ab, request(Opcode::send, {from.part(0, 100)}, true, 1));
  post(*link.ab, request(Opcode::send, {from.part(100, 100)}, true, 2));
  REQUIRE(link.a.is_quiet());
  REQUIRE(link.b.receives->post(10, into.at(0), 100, into.region().local_key) == Status::done);
  expect(link.b.next_completion(), 10);
  expect(link.a.next_completion(), 1);
  REQUIRE(link.a.is_quiet());
  REQUIRE(link.b.receives->post(11, into.at(100), 100, into.region().local_key) == Status::done);
  expect(link.b.next_completion(), 11);
  expect(link.a.next_completion(), 2);
  REQUIRE(has(into.at(0), 200, 3));
}

TEST_CASE("A sender whose tries for a receive entry are limited fails after them",
          "[contract][send]") {
  Link link(128, 256, 2);
  if (!link.a.device->capabilities().receive_not_ready) return;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  REQUIRE(link.b.receives->post(10, into.at(0), 100, into.region().local_key) == Status::done);
  post(*link.ab, request(Opcode::send, {from.part(0, 100)}, true, 1));
  post(*link.ab, request(Opcode::send, {from.part(0, 100)}, true, 2));
  post(*link.ab, to(request(Opcode::write, {from.part(0, 100)}, true, 3), into, 0));
  expect(link.b.next_completion(), 10);
  expect(link.a.next_completion(), 1);
  expect(link.a.next_completion(), 2, CompletionStatus::receive_not_ready_exceeded);
  expect(link.a.next_completion(), 3, CompletionStatus::flushed);
  // Some providers part with the peer when this side takes the event of its own failure.
  Event own;
  Event lost;
  await("the loss at the peer", [&] {
    static_cast<void>(link.a.device->poll_event(own));
    return link.b.device->poll_event(lost);
  });
  REQUIRE(lost.kind == Event::Kind::peer_lost);
}

TEST_CASE("Inline data is taken before post returns", "[contract][send]") {
  Link link;
  const std::uint32_t bytes = link.a.device->capabilities().inline_max_bytes;
  if (bytes == 0) return;
  std::vector<unsigned char> unregistered(bytes + 1);
  Memory into(*link.b.device, 16384);
  const std::uint32_t count = std::min(16U, 16384U / bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    fill(unregistered.data(), bytes, i);
    WorkRequest write =
        to(request(Opcode::write, {{unregistered.data(), bytes, 0}}, true, i), into, i * bytes);
    write.inline_data = true;
    post(*link.ab, write);
    std::memset(unregistered.data(), 0xee, bytes);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    expect(link.a.next_completion(), i);
    REQUIRE(has(into.at(i * bytes), bytes, i));
  }
  WorkRequest over = to(request(Opcode::write, {{unregistered.data(), bytes + 1, 0}}), into, 0);
  over.inline_data = true;
  REQUIRE(link.ab->post(over) == Status::bad_argument);
}

namespace {

/// Adapters report a right that the queue pair does not give as an access error or as an invalid
/// request.
bool refused(CompletionStatus status) {
  return status == CompletionStatus::remote_access_error ||
         status == CompletionStatus::remote_error;
}

}  // namespace

TEST_CASE("A queue pair bounds what its peer may do", "[contract][rights]") {
  Link link;
  Memory from(*link.a.device, 64, access::any);
  Memory into(*link.b.device, 64, access::any);
  // Three connections, for a refused request ends its own.
  const auto attempt = [&](Opcode opcode) {
    auto ab = link.a.make_pair();
    auto ba = link.b.device->make_queue_pair({.completions = link.b.completions.get(),
                                              .receives = link.b.receives.get(),
                                              .remote_rights = access::remote_write});
    link.join(*ab, *ba);
    post(*ab, to(request(opcode, {from.part(0, 8)}, true, 7), into, 0));
    const Completion completion = link.a.next_completion();
    REQUIRE(completion.id == 7);
    return completion.status;
  };
  CHECK(attempt(Opcode::write) == CompletionStatus::success);
  CHECK(refused(attempt(Opcode::read)));
  if (link.a.device->capabilities().atomics) CHECK(refused(attempt(Opcode::fetch_add)));
}

TEST_CASE("Up to three pieces are gathered", "[contract][send]") {
  const bool backed = GENERATE(false, true);
  Link link;
  Memory from(*link.a.device, 300000);  // never backed: mixed with a backed target
  Memory into(*link.b.device, 300000, backed);
  fill(from.at(0), 250000, 9);
  // In the target they stand side by side as they do in the source.
  const std::initializer_list<Gather> pieces = {from.part(0, 17), from.part(17, 200000),
                                                from.part(200017, 1)};
  post(*link.ab, to(request(Opcode::write, pieces, true, 1), into, 3));
  expect(link.a.next_completion(), 1);
  REQUIRE(has(into.at(3), 200018, 9));
  REQUIRE(into.look(2) == 0);
  REQUIRE(into.look(3 + 200018) == 0);

  std::memset(into.at(0), 0, 300000);
  REQUIRE(link.b.receives->post(5, into.at(1), 250000, into.region().local_key) == Status::done);
  post(*link.ab, request(Opcode::send, pieces, true, 2));
  const Completion received = link.b.next_completion();
  expect(received, 5);
  REQUIRE(received.bytes == 200018);
  REQUIRE(has(into.at(1), 200018, 9));
}

TEST_CASE("A receive entry that is too small fails both ends", "[contract][send]") {
  Link link;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  REQUIRE(link.b.receives->post(10, into.at(0), 99, into.region().local_key) == Status::done);
  post(*link.ab, request(Opcode::send, {from.part(0, 100)}, false, 1));
  expect_fault(link.b.next_completion(), 10, CompletionStatus::length_error);
  const Completion failed = link.a.next_completion();
  REQUIRE(failed.id == 1);
  REQUIRE(failed.status != CompletionStatus::success);
}

// --- Writes ----------------------------------------------------------------------------

TEST_CASE("A write's last byte arrives last", "[contract][write]") {
  const bool backed = GENERATE(false, true);
  Link link;
  if (link.ba->write_order().last_byte == LastByte::unknown) return;
  constexpr std::size_t room = 300000;
  Memory from(*link.a.device, room, backed);
  Memory into(*link.b.device, room, backed);
  const std::size_t sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 1000, 4096, 5001, 65536, 70001, 250000};
  std::uint32_t round = 0;
  for (int repeat = 0; repeat < 8; ++repeat) {
    for (const std::size_t bytes : sizes) {
      const std::size_t offset = (round * 13U) % 64U;
      fill(from.at(0), bytes, ++round);
      std::memset(into.at(offset), 0, bytes);
      from.at(0)[bytes - 1] = 0x5a;
      post(*link.ab, to(request(Opcode::write, {from.part(0, bytes)}, true, round), into, offset));
      await("the last byte", [&] { return into.look(offset + bytes - 1) == 0x5a; });
      REQUIRE(has(into.at(offset), bytes - 1, round));
      expect(link.a.next_completion(), round);
    }
  }
}

TEST_CASE("Writes of one queue pair arrive in the order of posting", "[contract][write]") {
  const bool backed = GENERATE(false, true);
  Link link;
  Memory from(*link.a.device, 1U << 20U, backed);
  Memory into(*link.b.device, 1U << 20U, backed);
  constexpr std::size_t flag = (1U << 20U) - 1;
  for (std::uint32_t round = 1; round <= 30; ++round) {
    const std::size_t bytes = round * 9001U;
    fill(from.at(0), bytes, round);
    from.at(flag)[0] = static_cast<unsigned char>(round);
    post(*link.ab, to(request(Opcode::write, {from.part(0, bytes)}, false), into, 0));
    post(*link.ab, to(request(Opcode::write, {from.part(flag, 1)}, true, round), into, flag));
    await("the flag", [&] { return into.look(flag) == round; });
    REQUIRE(has(into.at(0), bytes, round));
    expect(link.a.next_completion(), round);
  }
}

TEST_CASE("A write with immediate takes a receive entry and keeps out of its buffer",
          "[contract][write]") {
  Link link;
  Memory from(*link.a.device, 65536);
  Memory into(*link.b.device, 65536);
  fill(from.at(0), 30000, 4);
  REQUIRE(link.b.receives->post(10, into.at(0), 100, into.region().local_key) == Status::done);
  WorkRequest write =
      to(request(Opcode::write_with_immediate, {from.part(0, 30000)}, true, 1), into, 1000);
  write.immediate = 0xdeadbeef;
  post(*link.ab, write);
  const Completion received = link.b.next_completion();
  expect(received, 10);
  REQUIRE(received.has_immediate);
  REQUIRE(received.immediate == 0xdeadbeef);
  REQUIRE(received.bytes == 30000);
  REQUIRE(has(into.at(1000), 30000, 4));
  REQUIRE(into.look(0) == 0);
  expect(link.a.next_completion(), 1);
}

TEST_CASE("Only signalled requests complete, each for those before it", "[contract][write]") {
  Link link(32);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  // More than the queue holds, all in all: a completion frees what is before it.
  for (std::uint64_t round = 0; round < 10; ++round) {
    for (int i = 0; i < 31; ++i)
      post(*link.ab, to(request(Opcode::write, {from.part(0, 8)}, false, 999), into, 0));
    post(*link.ab, to(request(Opcode::write, {from.part(0, 8)}, true, round), into, 0));
    expect(link.a.next_completion(), round);
  }
  REQUIRE(link.a.is_quiet());
}

TEST_CASE("Large messages arrive whole, whatever their alignment", "[contract][large]") {
  const bool backed = GENERATE(false, true);
  constexpr std::size_t bytes = (5U << 20U) + 3;
  Link link;
  Memory from(*link.a.device, bytes + 100, backed);
  Memory into(*link.b.device, bytes + 100, backed);
  fill(from.at(1), bytes, 1);
  post(*link.ab, to(request(Opcode::write, {from.part(1, bytes)}, true, 1), into, 6));
  expect(link.a.next_completion(), 1);
  REQUIRE(has(into.at(6), bytes, 1));

  fill(into.at(3), bytes, 2);
  post(*link.ab, to(request(Opcode::read, {from.part(5, bytes)}, true, 2), into, 3));
  expect(link.a.next_completion(), 2);
  REQUIRE(has(from.at(5), bytes, 2));

  fill(from.at(7), bytes, 3);
  REQUIRE(link.b.receives->post(10, into.at(9), bytes + 1, into.region().local_key) ==
          Status::done);
  post(*link.ab, request(Opcode::send, {from.part(7, bytes)}, true, 3));
  const Completion received = link.b.next_completion();
  expect(received, 10);
  REQUIRE(received.bytes == bytes);
  REQUIRE(has(into.at(9), bytes, 3));
}

// --- Reads, fences, atomics ------------------------------------------------------------

TEST_CASE("Reads bring the peer's bytes, into several pieces too", "[contract][read]") {
  const bool backed = GENERATE(false, true);
  Link link;
  Memory here(*link.a.device, 65536, backed);
  Memory there(*link.b.device, 65536);
  fill(there.at(0), 50000, 8);
  for (std::uint64_t i = 0; i < 40; ++i) {  // more than a device keeps under way at once
    post(*link.ab,
         to(request(Opcode::read, {here.part(i * 1000, 1000)}, true, i), there, i * 1000));
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Completion completion = link.a.next_completion();
    expect(completion, i);
    REQUIRE(completion.opcode == Opcode::read);
  }
  REQUIRE(has(here.at(0), 40000, 8));

  std::memset(here.at(0), 0, 65536);
  post(*link.ab,
       to(request(Opcode::read, {here.part(50, 100), here.part(1000, 1), here.part(2000, 30000)},
                  true, 50),
          there, 0));
  expect(link.a.next_completion(), 50);
  std::vector<unsigned char> joined(here.at(50), here.at(150));
  joined.push_back(here.at(1000)[0]);
  joined.insert(joined.end(), here.at(2000), here.at(32000));
  REQUIRE(has(joined.data(), joined.size(), 8));
}

TEST_CASE("A fenced send leaves after the reads before it", "[contract][fence]") {
  Link link;
  constexpr std::size_t bytes = 2U << 20U;
  Memory here(*link.a.device, bytes + 64);
  Memory there(*link.b.device, bytes);
  for (std::uint32_t round = 1; round <= 3; ++round) {
    fill(there.at(0), bytes, round);
    REQUIRE(link.b.receives->post(round, nullptr, 0, 0) == Status::done);
    post(*link.ab, to(request(Opcode::read, {here.part(0, bytes)}, false), there, 0));
    WorkRequest send = request(Opcode::send, {}, true, 100 + round);
    send.fenced = true;
    post(*link.ab, send);
    expect(link.b.next_completion(), round);
    REQUIRE(has(here.at(0), bytes, round));
    expect(link.a.next_completion(), 100 + round);
  }
}

TEST_CASE("Atomics give the old value and store the new one", "[contract][atomic]") {
  const bool backed = GENERATE(false, true);
  Link link;
  if (!link.a.device->capabilities().atomics) return;
  Memory here(*link.a.device, 4096);
  Memory there(*link.b.device, 4096, backed);
  const auto word = [](const Memory& memory, std::size_t offset) {
    std::uint64_t value = 0;
    std::memcpy(&value, memory.at(offset), sizeof(value));
    return value;
  };
  for (std::uint64_t i = 0; i < 20; ++i) {
    WorkRequest add = to(request(Opcode::fetch_add, {here.part(8 * i, 8)}, true, i), there, 64);
    add.operand = i + 1;
    post(*link.ab, add);
  }
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < 20; ++i) {
    expect(link.a.next_completion(), i);
    REQUIRE(word(here, 8 * i) == sum);
    sum += i + 1;
  }
  REQUIRE(word(there, 64) == sum);

  WorkRequest swap = to(request(Opcode::compare_swap, {here.part(0, 8)}, true, 30), there, 64);
  swap.compare = sum + 1;
  swap.operand = 5;
  post(*link.ab, swap);
  expect(link.a.next_completion(), 30);
  REQUIRE(word(here, 0) == sum);
  REQUIRE(word(there, 64) == sum);
  swap.compare = sum;
  swap.id = 31;
  post(*link.ab, swap);
  expect(link.a.next_completion(), 31);
  REQUIRE(word(here, 0) == sum);
  REQUIRE(word(there, 64) == 5);
}
