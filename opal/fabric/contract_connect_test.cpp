// The rules of fabric.hpp for connections, from the request to the loss of a peer.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_expect.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

TEST_CASE("A connection request brings its data; both ends are told", "[contract][connect]") {
  Endpoint a(0);
  Endpoint b(1);
  auto ab = a.make_pair();
  auto ba = b.make_pair();
  REQUIRE(ab->number() != 0);
  Memory memory(*a.device, 4096);
  REQUIRE(ab->post(request(Opcode::send, {memory.part(0, 8)})) ==
          Status::bad_argument);  // not connected

  PrivateData data;
  data.size_bytes = private_max_bytes;
  fill(reinterpret_cast<unsigned char*>(data.bytes.data()), private_max_bytes, 5);
  REQUIRE(a.device->connect(*ab, b.device->address(), data) == Status::done);
  const Event asked = b.next_event_from(a);
  REQUIRE(asked.kind == Event::Kind::connect_request);
  REQUIRE(asked.queue_pair == nullptr);
  REQUIRE(asked.data.size_bytes >= private_max_bytes);
  REQUIRE(
      has(reinterpret_cast<const unsigned char*>(asked.data.bytes.data()), private_max_bytes, 5));
  REQUIRE(b.device->accept(asked.request, *ba) == Status::done);
  const Event at_a = a.next_event();
  REQUIRE(at_a.kind == Event::Kind::established);
  REQUIRE(at_a.queue_pair == ab.get());
  const Event at_b = b.next_event();
  REQUIRE(at_b.kind == Event::Kind::established);
  REQUIRE(at_b.queue_pair == ba.get());
}

TEST_CASE("An established connection tells how writes arrive", "[contract][connect]") {
  Link link;
  for (const QueuePair* pair : {link.ab.get(), link.ba.get()}) {
    const WriteOrder order = pair->write_order();
    REQUIRE(order.packet_bytes >= 256);
    if (provider_is("soft")) REQUIRE(order.last_byte == LastByte::last);
  }
}

TEST_CASE("A device may reach its own kind, and nothing that is no address of it",
          "[contract][connect]") {
  Endpoint a(0);
  Endpoint b(1);
  REQUIRE(a.device->may_reach(b.device->address()));
  Address other = b.device->address();
  other.bytes[0] ^= std::byte{0x55};
  REQUIRE_FALSE(a.device->may_reach(other));
  other = b.device->address();
  --other.size_bytes;
  REQUIRE_FALSE(a.device->may_reach(other));
}

TEST_CASE("A refused connection is reported as rejected", "[contract][connect]") {
  Endpoint a(0);
  Endpoint b(1);
  auto ab = a.make_pair();
  REQUIRE(a.device->connect(*ab, b.device->address(), PrivateData{}) == Status::done);
  const Event asked = b.next_event_from(a);
  REQUIRE(asked.kind == Event::Kind::connect_request);
  b.device->reject(asked.request);
  const Event answer = a.next_event();
  REQUIRE(answer.kind == Event::Kind::rejected);
  REQUIRE(answer.queue_pair == ab.get());
  Memory memory(*a.device, 4096);
  REQUIRE(ab->post(request(Opcode::send, {memory.part(0, 8)})) != Status::done);
}

TEST_CASE("A process that has ended is unreachable", "[contract][connect][fork]") {
  Child child([](const Child& parent) {
    Endpoint b(1);
    parent.tell(b.device->address());
    static_cast<void>(parent.hear<char>());
  });
  const auto address = child.hear<Address>();
  child.kill_and_wait();
  Endpoint a(0);
  auto ab = a.make_pair();
  REQUIRE(a.device->connect(*ab, address, PrivateData{}) == Status::done);
  const Event answer = a.next_event();
  REQUIRE(answer.kind == Event::Kind::unreachable);
  REQUIRE(answer.queue_pair == ab.get());
  REQUIRE_FALSE(answer.why.empty());
}

TEST_CASE("Two that ask each other at once get two connections", "[contract][connect]") {
  Link link;
  auto ab = link.a.make_pair();
  auto ba = link.b.make_pair();
  REQUIRE(link.a.device->connect(*ab, link.b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(link.b.device->connect(*ba, link.a.device->address(), PrivateData{}) == Status::done);
  auto accepted_by_a = link.a.make_pair();
  auto accepted_by_b = link.b.make_pair();
  int established = 0;
  const auto turn = [&](Endpoint& end, QueuePair& accepting) {
    Event event;
    if (!end.device->poll_event(event)) return;
    if (event.kind == Event::Kind::connect_request) {
      REQUIRE(end.device->accept(event.request, accepting) == Status::done);
    } else {
      REQUIRE(event.kind == Event::Kind::established);
      ++established;
    }
  };
  await("four ends", [&] {
    turn(link.a, *accepted_by_a);
    turn(link.b, *accepted_by_b);
    return established == 4;
  });
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  fill(from.at(0), 64, 1);
  post(*ab, to(request(Opcode::write, {from.part(0, 32)}, true, 1), into, 0));
  post(*accepted_by_a, to(request(Opcode::write, {from.part(32, 32)}, true, 2), into, 32));
  static_cast<void>(link.a.next_completion());
  static_cast<void>(link.a.next_completion());
  REQUIRE(has(into.at(0), 64, 1));
}

TEST_CASE("Closing a queue pair is peer_lost at the other side, once, and flushes it",
          "[contract][connect]") {
  Link link;
  Memory memory(*link.b.device, 4096);
  const bool waits = link.b.device->capabilities().receive_not_ready;
  // No receive entry at a: this stays under way.
  if (waits) {
    for (std::uint64_t id = 1; id <= 3; ++id)
      post(*link.ba, request(Opcode::send, {memory.part(0, 8)}, id != 2, id));
  }
  link.ab.reset();
  const Event lost = link.b.next_event();
  REQUIRE(lost.kind == Event::Kind::peer_lost);
  REQUIRE(lost.queue_pair == link.ba.get());
  REQUIRE_FALSE(lost.why.empty());
  for (std::uint64_t id = 1; waits && id <= 3; ++id) {
    const Completion completion = link.b.next_completion();
    REQUIRE(completion.id == id);  // the unsignalled one too
    REQUIRE(completion.status != CompletionStatus::success);
  }
  REQUIRE(link.ba->post(request(Opcode::send, {memory.part(0, 8)})) == Status::broken);
  Event more;
  for (int i = 0; i < 1000; ++i) REQUIRE_FALSE(link.b.device->poll_event(more));
}

TEST_CASE("The death of a peer process is peer_lost with a reason, and flushes",
          "[contract][connect][fork]") {
  Child child([](const Child& parent) {
    Endpoint b(1);
    auto ba = b.make_pair();
    parent.tell(b.device->address());
    const Event asked = b.next_event();
    if (b.device->accept(asked.request, *ba) != Status::done ||
        b.next_event().kind != Event::Kind::established)
      return;
    Memory memory(*b.device, 1U << 20U);
    parent.tell(std::pair{memory.address(0), memory.region().remote_key});
    static_cast<void>(parent.hear<char>());
  });
  Endpoint a(0);
  auto ab = a.make_pair();
  REQUIRE(a.device->connect(*ab, child.hear<Address>(), PrivateData{}) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  const auto [address, key] = child.hear<std::pair<std::uint64_t, std::uint32_t>>();
  Memory memory(*a.device, 1U << 20U);
  std::uint64_t posted = 0;
  if (a.device->capabilities().receive_not_ready)
    post(*ab, request(Opcode::send, {memory.part(0, 8)}, true, posted++));
  for (int i = 0; i < 5; ++i) {
    WorkRequest write = request(Opcode::write, {memory.part(0, 1U << 20U)}, true, posted++);
    write.remote_address = address;
    write.remote_key = key;
    post(*ab, write);
  }
  child.kill_and_wait();
  const Event lost = a.next_event();
  REQUIRE(lost.kind == Event::Kind::peer_lost);
  REQUIRE(lost.queue_pair == ab.get());
  REQUIRE_FALSE(lost.why.empty());
  for (std::uint64_t id = 0; id < posted; ++id) REQUIRE(a.next_completion().id == id);
  REQUIRE(ab->post(request(Opcode::send, {memory.part(0, 8)})) == Status::broken);
}
