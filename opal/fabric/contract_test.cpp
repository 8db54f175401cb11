// The rules of fabric.hpp for memory, accounts, errors and numbers: whatever provider is under
// test keeps all of them.
// SPDX-License-Identifier: BSD-3-Clause
#include "contract_expect.hpp"

#include <algorithm>
#include <cerrno>

using namespace overlap::fabric;
using namespace overlap::fabric::contract;

// --- Memory ----------------------------------------------------------------------------

TEST_CASE("Memory is registered, refused with a reason, and deregistered", "[contract][memory]") {
  Endpoint a(0);
  std::vector<unsigned char> bytes(10000);
  MemoryRegion region;
  REQUIRE(a.device->register_memory(bytes.data() + 1, 9001, access::any, Backing{}, region) ==
          Status::done);
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

// --- Accounts --------------------------------------------------------------------------

TEST_CASE("A completion queue holds as many entries as it was made for", "[contract][account]") {
  constexpr std::uint32_t entries = 48;
  Endpoint a(0);
  Endpoint b(1, entries);
  a.completions = a.device->make_completion_queue(entries);
  b.completions = b.device->make_completion_queue(entries);
  auto ab = a.make_pair(entries);
  auto ba = b.make_pair(1);
  REQUIRE(a.device->connect(*ab, b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(b.device->accept(b.next_event_from(a).request, *ba) == Status::done);
  await("the connection", [&, done = 0]() mutable {
    Event event;
    done += a.device->poll_event(event) ? 1 : 0;
    done += b.device->poll_event(event) ? 1 : 0;
    return done == 2;
  });
  Memory from(*a.device, 4096);
  Memory into(*b.device, 4096);
  for (std::uint8_t round = 1; round <= 3; ++round) {
    from.at(0)[0] = round;
    for (std::uint64_t id = 0; id < entries - 1; ++id) {
      REQUIRE(b.receives->post(id, into.at(8 * id), 8, into.region().local_key) == Status::done);
      post(*ab, request(Opcode::send, {from.part(0, 8)}, true, id));
    }
    post(*ab, to(request(Opcode::write, {from.part(0, 8)}, true, 1000), into, 4000));
    await("the last write", [&] { return into.look(4000) == round; });
    for (std::uint64_t id = 0; id < entries - 1; ++id) {
      expect(a.next_completion(), id);
      expect(b.next_completion(), id);
    }
    expect(a.next_completion(), 1000);
  }
  REQUIRE(a.is_quiet());
  REQUIRE(b.is_quiet());
}

TEST_CASE("A queue pair that is destroyed reports every signalled request first, once",
          "[contract][account]") {
  Link link;
  constexpr std::size_t large = 4U << 20U;
  Memory from(*link.a.device, large);
  Memory into(*link.b.device, large);
  std::vector<std::uint64_t> signalled;
  std::uint64_t id = 100;
  const auto post_one = [&](Opcode opcode, std::size_t bytes, bool signal) {
    const WorkRequest plain = request(opcode, {from.part(0, bytes)}, signal, id);
    post(*link.ab, opcode == Opcode::send ? plain : to(plain, into, 0));
    if (signal) signalled.push_back(id);
    ++id;
  };
  post_one(Opcode::write, 8, true);
  expect(link.a.next_completion(), 100);
  signalled.clear();
  for (int i = 0; i < 3; ++i) post_one(Opcode::write, 64, i == 1);
  post_one(Opcode::write, large, true);
  post_one(Opcode::read, large, true);
  if (link.a.device->capabilities().receive_not_ready)
    post_one(Opcode::send, 16, true);  // nobody takes it
  for (int i = 0; i < 20; ++i) post_one(Opcode::write, 1024, i % 3 != 0);
  const std::uint32_t number = link.ab->number();
  link.ab.reset();

  // No waiting: all of them stand in the queue when the queue pair is gone.
  std::vector<std::uint64_t> reported;
  bool failed = false;
  Completion completion;
  while (link.a.completions->poll({&completion, 1}) == 1) {
    REQUIRE(completion.queue_pair_number == number);
    if (completion.status != CompletionStatus::success) {
      REQUIRE(completion.status == CompletionStatus::flushed);
      failed = true;
    } else {
      REQUIRE_FALSE(failed);  // in order: behind the first that did not end none did
    }
    if (std::find(signalled.begin(), signalled.end(), completion.id) != signalled.end())
      reported.push_back(completion.id);
  }
  REQUIRE(reported == signalled);
  REQUIRE(link.b.next_event().kind == Event::Kind::peer_lost);
  REQUIRE(link.a.is_quiet());

  // Both sides go on with others.
  auto ab = link.a.make_pair();
  auto ba = link.b.make_pair();
  link.join(*ab, *ba);
  post(*ab, to(request(Opcode::write, {from.part(0, 8)}, true, 5), into, 0));
  expect(link.a.next_completion(), 5);
}

TEST_CASE("A queue pair that is destroyed after its peer has gone reports every request once",
          "[contract][account]") {
  Link link;
  Memory from(*link.a.device, 1U << 20U);
  Memory into(*link.b.device, 1U << 20U);
  for (std::uint64_t id = 0; id < 6; ++id)
    post(*link.ab, to(request(Opcode::write, {from.part(0, 1U << 20U)}, true, id), into, 0));
  link.ba.reset();
  const bool noticed = GENERATE(false, true);
  if (noticed) REQUIRE(link.a.next_event().kind == Event::Kind::peer_lost);
  link.ab.reset();
  for (std::uint64_t id = 0; id < 6; ++id) {
    Completion completion;
    REQUIRE(link.a.completions->poll({&completion, 1}) == 1);
    REQUIRE(completion.id == id);
  }
  REQUIRE(link.a.is_quiet());
}

TEST_CASE("Requests of one id are each reported once", "[contract][account]") {
  Link link;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  constexpr std::uint64_t id = 7;
  for (int i = 0; i < 3; ++i)
    post(*link.ab, to(request(Opcode::write, {from.part(0, 8)}, false, id), into, 0));
  WorkRequest beyond = to(request(Opcode::write, {from.part(0, 8)}, true, id), into, 0);
  beyond.remote_address += 1U << 30U;
  post(*link.ab, beyond);
  post(*link.ab, to(request(Opcode::write, {from.part(0, 8)}, true, id), into, 0));
  const Completion failed = link.a.next_completion();
  REQUIRE(failed.id == id);
  REQUIRE(failed.status != CompletionStatus::success);
  expect(link.a.next_completion(), id, CompletionStatus::flushed);
  link.ab.reset();
  REQUIRE(link.a.is_quiet());
}

// --- Errors ----------------------------------------------------------------------------

TEST_CASE("A request outside its rights fails, and everything behind it is flushed",
          "[contract][error]") {
  enum class Fault {
    wrong_remote_key,
    beyond_end,
    no_remote_write,
    no_remote_read,
    deregistered,
    wrong_local_key,
    no_local_write
  };
  const Fault fault = GENERATE(Fault::wrong_remote_key, Fault::beyond_end, Fault::no_remote_write,
                               Fault::no_remote_read, Fault::deregistered, Fault::wrong_local_key,
                               Fault::no_local_write);
  CAPTURE(static_cast<int>(fault));
  Link link;
  const bool only_local = fault == Fault::no_remote_write || fault == Fault::no_remote_read;
  Memory here(*link.a.device, 8192, false, fault == Fault::no_local_write ? 0 : access::any);
  Memory there(*link.b.device, 8192, false, only_local ? access::local_write : access::any);
  const bool reads = fault == Fault::no_remote_read || fault == Fault::no_local_write;
  WorkRequest bad =
      to(request(reads ? Opcode::read : Opcode::write, {here.part(0, 100)}, false, 2), there, 0);
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
    const Status status =
        link.ab->post(to(request(Opcode::write, {here.part(0, 8)}, id == 4, id), there, 0));
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
  for (std::uint64_t id = 3; id <= posted; ++id)
    expect(link.a.next_completion(), id, CompletionStatus::flushed);
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

// --- Numbers ---------------------------------------------------------------------------

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
    for (std::uint64_t i = 0; i < 16; ++i)
      REQUIRE(link.b.receives->post(i, into.at(0), 16, into.region().local_key) == Status::done);
    for (std::uint64_t i = 0; i < 16; ++i)
      post(*link.ab, request(Opcode::send, {from.part(0, 16)}, i == 15, 50 + i));
    for (std::uint64_t i = 0; i < 16; ++i) expect(link.b.next_completion(), i);
    expect(link.a.next_completion(), 65);
  }
}

TEST_CASE("A receive entry's id has 63 bits", "[contract][queue]") {
  Endpoint a(0);
  Memory memory(*a.device, 4096);
  constexpr std::uint64_t last = (std::uint64_t{1} << 63U) - 1;
  const auto post_as = [&](std::uint64_t id) {
    return a.receives->post(id, memory.at(0), 64, memory.region().local_key);
  };
  REQUIRE(post_as(last + 1) == Status::bad_argument);
  REQUIRE(post_as(last) == Status::done);
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
  const auto play = [](Endpoint& end, QueuePair& pair, const Memory& memory, const Where& peer,
                       std::uint32_t first) {
    for (std::uint32_t round = first; round < rounds; round += 2) {
      if (round > 0) {
        await("the other's write",
              [&] { return memory.look(bytes - 1) == static_cast<unsigned char>(round); });
        if (!has(memory.at(0), bytes - 1, round)) throw std::runtime_error("wrong bytes");
      }
      fill(memory.at(bytes), bytes - 1, round + 1);
      memory.at(2 * bytes - 1)[0] = static_cast<unsigned char>(round + 1);
      WorkRequest write = request(Opcode::write, {memory.part(bytes, bytes)}, true, round);
      write.remote_address = peer.address;
      write.remote_key = peer.key;
      if (pair.post(write) != Status::done) throw std::runtime_error("post failed");
      const Completion completion = end.next_completion();
      if (completion.status != CompletionStatus::success)
        throw std::runtime_error(text(completion.status));
    }
  };
  Child child([&](const Child& parent) {
    Endpoint b(1);
    Memory memory(*b.device, 2 * bytes);
    auto ba = b.make_pair();
    parent.tell(b.device->address());
    parent.tell(Where{memory.address(0), memory.region().remote_key});
    const auto peer = parent.hear<Where>();
    if (b.device->accept(b.next_event().request, *ba) != Status::done)
      throw std::runtime_error("accept failed");
    if (b.next_event().kind != Event::Kind::established)
      throw std::runtime_error("not established");
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
