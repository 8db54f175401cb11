// The rules of fabric.hpp, as data: whatever provider is under test keeps all of them.
#include "contract.hpp"

#include <algorithm>
#include <cerrno>

#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

namespace {

void post(QueuePair& pair, const WorkRequest& request) { REQUIRE(pair.post(request) == Status::done); }

void expect(const Completion& completion, std::uint64_t id, CompletionStatus status = CompletionStatus::success) {
  REQUIRE(completion.id == id);
  INFO(text(completion.status));
  REQUIRE(completion.status == status);
}

/// A fault of this side's own. A device need not know its name: rxe says other_error for an unknown local key and for a receive
/// entry that is too small.
void expect_fault(const Completion& completion, std::uint64_t id, CompletionStatus status) {
  REQUIRE(completion.id == id);
  INFO(text(completion.status));
  REQUIRE((completion.status == status || (completion.status == CompletionStatus::other_error && provider_is("verbs"))));
}

}  // namespace

// --- Memory ------------------------------------------------------------------------------------------------------------------

TEST_CASE("Memory is registered, refused with a reason, and deregistered", "[contract][memory]") {
  Endpoint a(0);
  std::vector<unsigned char> bytes(10000);
  MemoryRegion region;
  REQUIRE(a.device->register_memory(bytes.data() + 1, 9001, access::any, Backing{}, region) == Status::done);
  REQUIRE(region.address == bytes.data() + 1);
  REQUIRE(region.bytes == 9001);
  REQUIRE(region.provider != nullptr);
  a.device->deregister_memory(region);
  REQUIRE(region.provider == nullptr);

  void* hole = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ::munmap(hole, 8192);
  errno = 0;
  REQUIRE(a.device->register_memory(hole, 8192, access::any, Backing{}, region) == Status::refused);
  REQUIRE((errno == EFAULT || errno == ENOMEM));
  REQUIRE(region.provider == nullptr);
}

TEST_CASE("Capabilities are those of a device that can be used", "[contract]") {
  Endpoint a(0);
  const Capabilities& capabilities = a.device->capabilities();
  REQUIRE(capabilities.gather_max >= gather_limit);
  REQUIRE(capabilities.message_max_bytes >= 8U << 20U);
  REQUIRE(capabilities.send_queue_max >= 128);
  REQUIRE(capabilities.receive_queue_max >= 256);
  REQUIRE(capabilities.completion_queue_max >= 4096);
  REQUIRE_FALSE(capabilities.name.empty());
}

// --- Connections -------------------------------------------------------------------------------------------------------------

TEST_CASE("A connection request brings its data; both ends are told", "[contract][connect]") {
  Endpoint a(0);
  Endpoint b(1);
  auto ab = a.make_pair();
  auto ba = b.make_pair();
  REQUIRE(ab->number() != 0);
  Memory memory(*a.device, 4096);
  REQUIRE(ab->post(request(Opcode::send, {memory.part(0, 8)})) == Status::bad_argument);  // not connected

  PrivateData data;
  data.size_bytes = private_max_bytes;
  fill(reinterpret_cast<unsigned char*>(data.bytes.data()), private_max_bytes, 5);
  REQUIRE(a.device->connect(*ab, b.device->address(), data) == Status::done);
  const Event asked = b.next_event_from(a);
  REQUIRE(asked.kind == Event::Kind::connect_request);
  REQUIRE(asked.queue_pair == nullptr);
  REQUIRE(asked.data.size_bytes >= private_max_bytes);
  REQUIRE(has(reinterpret_cast<const unsigned char*>(asked.data.bytes.data()), private_max_bytes, 5));
  REQUIRE(b.device->accept(asked.request, *ba) == Status::done);
  const Event at_a = a.next_event();
  REQUIRE(at_a.kind == Event::Kind::established);
  REQUIRE(at_a.queue_pair == ab.get());
  const Event at_b = b.next_event();
  REQUIRE(at_b.kind == Event::Kind::established);
  REQUIRE(at_b.queue_pair == ba.get());
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

TEST_CASE("Closing a queue pair is peer_lost at the other side, once, and flushes it", "[contract][connect]") {
  Link link;
  Memory memory(*link.b.device, 4096);
  const bool waits = link.b.device->capabilities().receive_not_ready;
  // No receive entry at a: this stays under way.
  if (waits) {
    for (std::uint64_t id = 1; id <= 3; ++id) post(*link.ba, request(Opcode::send, {memory.part(0, 8)}, id != 2, id));
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

TEST_CASE("The death of a peer process is peer_lost with a reason, and flushes", "[contract][connect][fork]") {
  Child child([](const Child& parent) {
    Endpoint b(1);
    auto ba = b.make_pair();
    parent.tell(b.device->address());
    const Event asked = b.next_event();
    if (b.device->accept(asked.request, *ba) != Status::done || b.next_event().kind != Event::Kind::established) return;
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
  if (a.device->capabilities().receive_not_ready) post(*ab, request(Opcode::send, {memory.part(0, 8)}, true, posted++));
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

// --- Sends -------------------------------------------------------------------------------------------------------------------

TEST_CASE("Sends fill receive entries in order", "[contract][send]") {
  const bool backed = GENERATE(false, true);
  Link link;
  constexpr std::size_t room = 9000;
  constexpr std::uint32_t count = 40;
  Memory from(*link.a.device, room * count, backed);
  Memory into(*link.b.device, room * count, backed);
  for (std::uint32_t i = 0; i < count; ++i) {
    REQUIRE(link.b.receives->post(100 + i, into.at(room * i), room, into.region().local_key) == Status::done);
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const std::size_t bytes = (i * 733U) % room;  // the first one is empty
    fill(from.at(room * i), bytes, i);
    WorkRequest send = request(i % 2 == 0 ? Opcode::send : Opcode::send_with_immediate, {from.part(room * i, bytes)}, true, i);
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

TEST_CASE("Inline data is taken before post returns", "[contract][send]") {
  Link link;
  const std::uint32_t bytes = link.a.device->capabilities().inline_max_bytes;
  if (bytes == 0) return;
  std::vector<unsigned char> unregistered(bytes + 1);
  Memory into(*link.b.device, 16384);
  const std::uint32_t count = std::min(16U, 16384U / bytes);
  for (std::uint32_t i = 0; i < count; ++i) {
    fill(unregistered.data(), bytes, i);
    WorkRequest write = to(request(Opcode::write, {{unregistered.data(), bytes, 0}}, true, i), into, i * bytes);
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

TEST_CASE("Up to three pieces are gathered", "[contract][send]") {
  const bool backed = GENERATE(false, true);
  Link link;
  Memory from(*link.a.device, 300000);  // never backed: mixed with a backed target
  Memory into(*link.b.device, 300000, backed);
  fill(from.at(0), 250000, 9);
  // In the target they stand side by side as they do in the source.
  const std::initializer_list<Gather> pieces = {from.part(0, 17), from.part(17, 200000), from.part(200017, 1)};
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

// --- Writes ------------------------------------------------------------------------------------------------------------------

TEST_CASE("A write's last byte arrives last", "[contract][write]") {
  const bool backed = GENERATE(false, true);
  Link link;
  if (!link.a.device->capabilities().last_byte_last) return;
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

TEST_CASE("A write with immediate takes a receive entry and keeps out of its buffer", "[contract][write]") {
  Link link;
  Memory from(*link.a.device, 65536);
  Memory into(*link.b.device, 65536);
  fill(from.at(0), 30000, 4);
  REQUIRE(link.b.receives->post(10, into.at(0), 100, into.region().local_key) == Status::done);
  WorkRequest write = to(request(Opcode::write_with_immediate, {from.part(0, 30000)}, true, 1), into, 1000);
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
    for (int i = 0; i < 31; ++i) post(*link.ab, to(request(Opcode::write, {from.part(0, 8)}, false, 999), into, 0));
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
  REQUIRE(link.b.receives->post(10, into.at(9), bytes + 1, into.region().local_key) == Status::done);
  post(*link.ab, request(Opcode::send, {from.part(7, bytes)}, true, 3));
  const Completion received = link.b.next_completion();
  expect(received, 10);
  REQUIRE(received.bytes == bytes);
  REQUIRE(has(into.at(9), bytes, 3));
}

// --- Reads, fences, atomics --------------------------------------------------------------------------------------------------

TEST_CASE("Reads bring the peer's bytes, into several pieces too", "[contract][read]") {
  const bool backed = GENERATE(false, true);
  Link link;
  Memory here(*link.a.device, 65536, backed);
  Memory there(*link.b.device, 65536);
  fill(there.at(0), 50000, 8);
  for (std::uint64_t i = 0; i < 40; ++i) {  // more than a device keeps under way at once
    post(*link.ab, to(request(Opcode::read, {here.part(i * 1000, 1000)}, true, i), there, i * 1000));
  }
  for (std::uint64_t i = 0; i < 40; ++i) {
    const Completion completion = link.a.next_completion();
    expect(completion, i);
    REQUIRE(completion.opcode == Opcode::read);
  }
  REQUIRE(has(here.at(0), 40000, 8));

  std::memset(here.at(0), 0, 65536);
  post(*link.ab, to(request(Opcode::read, {here.part(50, 100), here.part(1000, 1), here.part(2000, 30000)}, true, 50), there, 0));
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

// --- Errors ------------------------------------------------------------------------------------------------------------------

TEST_CASE("A request outside its rights fails, and everything behind it is flushed", "[contract][error]") {
  enum class Fault { wrong_remote_key, beyond_end, no_remote_write, no_remote_read, deregistered, wrong_local_key, no_local_write };
  const Fault fault = GENERATE(Fault::wrong_remote_key, Fault::beyond_end, Fault::no_remote_write, Fault::no_remote_read,
                               Fault::deregistered, Fault::wrong_local_key, Fault::no_local_write);
  CAPTURE(static_cast<int>(fault));
  Link link;
  const bool only_local = fault == Fault::no_remote_write || fault == Fault::no_remote_read;
  Memory here(*link.a.device, 8192, false, fault == Fault::no_local_write ? 0 : access::any);
  Memory there(*link.b.device, 8192, false, only_local ? access::local_write : access::any);
  const bool reads = fault == Fault::no_remote_read || fault == Fault::no_local_write;
  WorkRequest bad = to(request(reads ? Opcode::read : Opcode::write, {here.part(0, 100)}, false, 2), there, 0);
  if (fault == Fault::wrong_remote_key) bad.remote_key ^= 0x5500U;
  if (fault == Fault::beyond_end) bad.remote_address += 8192 - 99;
  if (fault == Fault::deregistered) there.forget();
  if (fault == Fault::wrong_local_key) bad.gather[0].local_key ^= 0x5500U;
  const bool local = fault == Fault::wrong_local_key || fault == Fault::no_local_write;

  REQUIRE(link.b.receives->post(10, nullptr, 0, 0) == Status::done);
  post(*link.ab, request(Opcode::send, {}, true, 1));
  post(*link.ab, bad);
  // The failure may already be known when these are posted.
  std::uint64_t posted = 2;
  for (std::uint64_t id = 3; id <= 5; ++id) {
    const Status status = link.ab->post(to(request(Opcode::write, {here.part(0, 8)}, id == 4, id), there, 0));
    if (status == Status::broken) break;
    REQUIRE(status == Status::done);
    posted = id;
  }
  expect(link.a.next_completion(), 1);
  if (local) {
    expect_fault(link.a.next_completion(), 2, CompletionStatus::protection_error);
  } else {
    expect(link.a.next_completion(), 2, CompletionStatus::remote_access_error);
  }
  for (std::uint64_t id = 3; id <= posted; ++id) expect(link.a.next_completion(), id, CompletionStatus::flushed);
  REQUIRE(link.ab->post(request(Opcode::send, {}, true, 9)) == Status::broken);
  for (std::size_t i = 0; i < there.bytes(); ++i) REQUIRE(there.look(i) == 0);
}

TEST_CASE("What the capabilities do not allow is refused", "[contract][error]") {
  Link link;
  Memory here(*link.a.device, 4096);
  WorkRequest many = request(Opcode::send, {here.part(0, 8)});
  many.gather_count = gather_limit + 1;
  REQUIRE(link.ab->post(many) == Status::bad_argument);
  WorkRequest receive = request(Opcode::receive, {here.part(0, 8)});
  REQUIRE(link.ab->post(receive) == Status::bad_argument);
}

// --- Numbers -----------------------------------------------------------------------------------------------------------------

TEST_CASE("A send queue takes as many requests as it has entries", "[contract][queue]") {
  Link link(64);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 64; ++i) {
      post(*link.ab, to(request(Opcode::write, {from.part(0, 16)}, i == 63, i), into, 0));
    }
    expect(link.a.next_completion(), 63);
  }
}

TEST_CASE("A receive queue takes as many entries as it has", "[contract][queue]") {
  Link link(64, 16);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 16; ++i) REQUIRE(link.b.receives->post(i, into.at(0), 16, into.region().local_key) == Status::done);
    for (std::uint64_t i = 0; i < 16; ++i) post(*link.ab, request(Opcode::send, {from.part(0, 16)}, i == 15, 50 + i));
    for (std::uint64_t i = 0; i < 16; ++i) expect(link.b.next_completion(), i);
    expect(link.a.next_completion(), 65);
  }
}

TEST_CASE("Many queue pairs share the queues of one device", "[contract][queue]") {
  constexpr std::size_t count = 40;
  Link link(16);
  Memory from(*link.a.device, 65536);
  Memory into(*link.b.device, 65536);
  std::vector<std::unique_ptr<QueuePair>> ab;
  std::vector<std::unique_ptr<QueuePair>> ba;
  for (std::size_t i = 0; i < count; ++i) {
    ab.push_back(link.a.make_pair(16));
    ba.push_back(link.b.make_pair(16));
    for (std::size_t j = 0; j < i; ++j) REQUIRE(ab[i]->number() != ab[j]->number());
    link.join(*ab.back(), *ba.back());
  }
  fill(from.at(0), 65536, 6);
  for (std::size_t i = 0; i < count; ++i) {
    post(*ab[i], to(request(Opcode::write, {from.part(i * 1500, 1500)}, true, i), into, i * 1500));
    REQUIRE(link.b.receives->post(i, nullptr, 0, 0) == Status::done);
    post(*ab[i], request(Opcode::send, {}, false));
  }
  std::vector<bool> written(count);
  std::vector<bool> received(count);
  for (std::size_t i = 0; i < count; ++i) {
    const Completion write = link.a.next_completion();
    REQUIRE(write.status == CompletionStatus::success);
    REQUIRE(write.queue_pair_number == ab[write.id]->number());
    written[write.id] = true;
    const Completion receive = link.b.next_completion();
    REQUIRE(receive.status == CompletionStatus::success);
    for (std::size_t j = 0; j < count; ++j) {
      if (ba[j]->number() == receive.queue_pair_number) received[j] = true;
    }
  }
  for (std::size_t i = 0; i < count; ++i) REQUIRE((written[i] && received[i]));
  REQUIRE(has(into.at(0), count * 1500, 6));
}

TEST_CASE("Two processes exchange data both ways", "[contract][fork]") {
  struct Where {
    std::uint64_t address;
    std::uint32_t key;
  };
  constexpr std::size_t bytes = 1U << 20U;
  constexpr std::uint32_t rounds = 20;
  // Each writes behind what the other has written before: a ping-pong with data.
  const auto play = [](Endpoint& end, QueuePair& pair, const Memory& memory, const Where& peer, std::uint32_t first) {
    for (std::uint32_t round = first; round < rounds; round += 2) {
      if (round > 0) {
        await("the other's write", [&] { return memory.look(bytes - 1) == static_cast<unsigned char>(round); });
        if (!has(memory.at(0), bytes - 1, round)) throw std::runtime_error("wrong bytes");
      }
      fill(memory.at(bytes), bytes - 1, round + 1);
      memory.at(2 * bytes - 1)[0] = static_cast<unsigned char>(round + 1);
      WorkRequest write = request(Opcode::write, {memory.part(bytes, bytes)}, true, round);
      write.remote_address = peer.address;
      write.remote_key = peer.key;
      if (pair.post(write) != Status::done) throw std::runtime_error("post failed");
      const Completion completion = end.next_completion();
      if (completion.status != CompletionStatus::success) throw std::runtime_error(text(completion.status));
    }
  };
  Child child([&](const Child& parent) {
    Endpoint b(1);
    Memory memory(*b.device, 2 * bytes);
    auto ba = b.make_pair();
    parent.tell(b.device->address());
    parent.tell(Where{memory.address(0), memory.region().remote_key});
    const auto peer = parent.hear<Where>();
    if (b.device->accept(b.next_event().request, *ba) != Status::done) throw std::runtime_error("accept failed");
    if (b.next_event().kind != Event::Kind::established) throw std::runtime_error("not established");
    play(b, *ba, memory, peer, 1);
    static_cast<void>(parent.hear<char>());
  });
  Endpoint a(0);
  Memory memory(*a.device, 2 * bytes);
  auto ab = a.make_pair();
  const auto address = child.hear<Address>();
  const auto peer = child.hear<Where>();
  child.tell(Where{memory.address(0), memory.region().remote_key});
  REQUIRE(a.device->connect(*ab, address, PrivateData{}) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  play(a, *ab, memory, peer, 0);
  await("the last write", [&] { return memory.look(bytes - 1) == rounds; });
  REQUIRE(has(memory.at(0), bytes - 1, rounds));
  child.tell('q');
  REQUIRE(child.wait() == 0);
}
