// Faults on command, and what has no room: the device process goes on, and its clients learn it.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_faults.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "control.hpp"
#include "opal/fabric/contract.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::contract;
using soft::SoftFaults;

TEST_CASE("Queue pairs are listed, stalled, resumed, delayed and failed by number",
          "[soft][faults]") {
  Link link;
  SoftFaults faults(own_domain());
  const auto pairs = faults.list();
  REQUIRE(pairs.size() == 2);
  for (const SoftFaults::PairInfo& info : pairs) {
    const bool is_ab = info.pair == link.ab->number();
    REQUIRE((is_ab || info.pair == link.ba->number()));
    REQUIRE(info.peer_pair == (is_ab ? link.ba : link.ab)->number());
    REQUIRE(info.node == (is_ab ? 0U : 1U));
    REQUIRE(info.process == ::getpid());
  }
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  const auto write = [&](std::uint64_t id) {
    return link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, true, id), into, 0));
  };

  faults.stall(link.ab->number());
  REQUIRE(write(1) == Status::done);
  faults.delay(link.ba->number(), 1);  // a round trip to the device: it has seen the doorbell
  REQUIRE(link.a.is_quiet());
  faults.resume(link.ab->number());
  REQUIRE(link.a.next_completion().id == 1);

  faults.link_down(1);
  REQUIRE(write(2) == Status::done);
  REQUIRE(link.a.is_quiet());
  faults.link_up(1);
  REQUIRE(link.a.next_completion().id == 2);

  faults.fail_next(link.ab->number(), CompletionStatus::retry_exceeded);
  REQUIRE(write(3) == Status::done);
  const Completion failed = link.a.next_completion();
  REQUIRE(failed.id == 3);
  REQUIRE(failed.status == CompletionStatus::retry_exceeded);
  REQUIRE(write(4) == Status::broken);
  REQUIRE(link.b.next_event().kind == Event::Kind::peer_lost);

  REQUIRE_THROWS_AS(faults.stall(123456), Error);
  REQUIRE_THROWS_AS(SoftFaults(own_domain() + ".nobody"), Error);
}

namespace {

std::uint32_t client_of(SoftFaults& faults, const QueuePair& pair) {
  for (const SoftFaults::PairInfo& info : faults.list()) {
    if (info.pair == pair.number()) return info.client;
  }
  FAIL("no such queue pair");
  return 0;
}

}  // namespace

TEST_CASE("Connection requests are lost, late and stale on command; others come through",
          "[soft][faults]") {
  Link link;
  SoftFaults faults(own_domain());
  const std::uint32_t b = client_of(faults, *link.ba);
  Event event;

  faults.lose_requests(b, 1, 1'000'000);
  auto lost = link.a.make_pair();
  REQUIRE(link.a.device->connect(*lost, link.b.device->address(), PrivateData{}) == Status::done);
  event = link.a.next_event();
  REQUIRE(event.kind == Event::Kind::unreachable);
  REQUIRE(event.queue_pair == lost.get());
  REQUIRE(event.why == "the peer does not answer");
  REQUIRE_FALSE(link.b.device->poll_event(event));

  faults.delay_requests(b, 50'000'000);
  auto gone = link.a.make_pair();
  auto stays = link.a.make_pair();
  REQUIRE(link.a.device->connect(*gone, link.b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(link.a.device->connect(*stays, link.b.device->address(), PrivateData{}) == Status::done);
  gone.reset();
  auto in_vain = link.b.make_pair();
  auto accepting = link.b.make_pair();
  REQUIRE(link.b.device->accept(link.b.next_event().request, *in_vain) == Status::done);
  event = link.b.next_event();
  while (event.kind == Event::Kind::connect_request) {
    REQUIRE(link.b.device->accept(event.request, *accepting) == Status::done);
    event = link.b.next_event();
  }
  const Event other = link.b.next_event();
  const Event& stale = event.queue_pair == in_vain.get() ? event : other;
  const Event& good = event.queue_pair == in_vain.get() ? other : event;
  REQUIRE(stale.kind == Event::Kind::unreachable);
  REQUIRE(good.kind == (good.queue_pair == accepting.get() ? Event::Kind::established
                                                           : Event::Kind::connect_request));
  faults.delay_requests(b, 0);
}

TEST_CASE("Registrations beyond a limit are refused, and taken again when others have gone",
          "[soft][faults]") {
  Link link;
  SoftFaults faults(own_domain());
  auto first = std::make_unique<Memory>(*link.a.device, 65536);
  faults.limit_memory(client_of(faults, *link.ab), 100'000);
  std::vector<unsigned char> bytes(65536);
  MemoryRegion region;
  errno = 0;
  REQUIRE(link.a.device->register_memory(bytes.data(), bytes.size(), access::any, Backing{},
                                         region) == Status::refused);
  REQUIRE(errno == ENOMEM);
  first.reset();
  REQUIRE(link.a.device->register_memory(bytes.data(), bytes.size(), access::any, Backing{},
                                         region) == Status::done);
  link.a.device->deregister_memory(region);
}

TEST_CASE("The last byte of a torn message comes after a pause", "[soft][faults]") {
  Link link;
  SoftFaults faults(own_domain());
  faults.tear(link.ab->number(), 300'000'000);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  fill(from.at(0), 4096, 3);
  from.at(0)[98] = from.at(0)[99] = 0x5a;
  REQUIRE(link.ab->post(to(request(Opcode::write, {from.part(0, 100)}, true, 1), into, 0)) ==
          Status::done);
  await("all bytes but one", [&] { return into.look(98) == 0x5a; });
  REQUIRE(into.look(99) == 0);
  await("the last byte", [&] { return into.look(99) == 0x5a; });
  REQUIRE(link.a.next_completion().id == 1);
}

TEST_CASE("A client can be ended on command; its peers see a dead process", "[soft][faults]") {
  Link link;
  SoftFaults faults(own_domain());
  std::uint32_t client = 0;
  for (const SoftFaults::PairInfo& info : faults.list()) {
    if (info.pair == link.ba->number()) client = info.client;
  }
  faults.end_client(client);
  const Event lost = link.a.next_event();
  REQUIRE(lost.kind == Event::Kind::peer_lost);
  REQUIRE(lost.why == "the peer process ended");
  const Event self = link.b.next_event();
  REQUIRE(self.kind == Event::Kind::peer_lost);
  REQUIRE(self.why == "the software device process ended");
}

TEST_CASE("A send queue that is full says so and takes more after completions", "[soft][queue]") {
  Link link(16);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  const auto write = [&](bool signalled) {
    return link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, signalled), into, 0));
  };
  for (int i = 0; i < 16; ++i) REQUIRE(write(i == 7) == Status::done);
  REQUIRE(write(true) == Status::retry_queue_full);
  static_cast<void>(link.a.next_completion());  // stands for the first eight
  for (int i = 0; i < 8; ++i) REQUIRE(write(i == 7) == Status::done);
  REQUIRE(write(true) == Status::retry_queue_full);
  static_cast<void>(link.a.next_completion());
  REQUIRE(write(true) == Status::done);
}

TEST_CASE("A full receive queue says so; a completion queue holds what it was made for",
          "[soft][queue]") {
  Endpoint a(0);
  Endpoint b(1, 16);
  b.completions = b.device->make_completion_queue(16);
  auto ab = a.make_pair();
  auto ba = b.make_pair();
  REQUIRE(a.device->connect(*ab, b.device->address(), PrivateData{}) == Status::done);
  REQUIRE(b.device->accept(b.next_event().request, *ba) == Status::done);
  REQUIRE(a.next_event().kind == Event::Kind::established);
  for (std::uint64_t i = 0; i < 16; ++i)
    REQUIRE(b.receives->post(i, nullptr, 0, 0) == Status::done);
  REQUIRE(b.receives->post(16, nullptr, 0, 0) == Status::retry_queue_full);
  for (std::uint64_t i = 0; i < 16; ++i)
    REQUIRE(ab->post(request(Opcode::send, {}, true, i)) == Status::done);
  for (std::uint64_t i = 0; i < 16; ++i) REQUIRE(a.next_completion().id == i);
  for (std::uint64_t i = 0; i < 16; ++i) REQUIRE(b.next_completion().id == i);
}

TEST_CASE("A completion queue that overflows fails all queue pairs that report through it",
          "[soft][queue]") {
  Link link;
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  const auto small = link.a.device->make_completion_queue(4);
  auto first = link.a.device->make_queue_pair(
      {.completions = small.get(), .receives = link.a.receives.get(), .send_queue_entries = 8});
  auto second = link.a.device->make_queue_pair(
      {.completions = small.get(), .receives = link.a.receives.get(), .send_queue_entries = 8});
  auto at_first = link.b.make_pair();
  auto at_second = link.b.make_pair();
  link.join(*first, *at_first);
  link.join(*second, *at_second);
  for (std::uint64_t id = 1; id <= 5; ++id) {
    REQUIRE(first->post(to(request(Opcode::write, {from.part(0, 8)}, true, id), into, 0)) ==
            Status::done);
  }
  for (int i = 0; i < 2; ++i) {
    const Event here = link.a.next_event();
    REQUIRE(here.kind == Event::Kind::peer_lost);
    REQUIRE((here.queue_pair == first.get() || here.queue_pair == second.get()));
    REQUIRE(here.why.find("completion queue overflowed") != std::string::npos);
    const Event there = link.b.next_event();
    REQUIRE(there.kind == Event::Kind::peer_lost);
    REQUIRE(there.why == "the peer's completion queue overflowed");
  }
  Completion seen[8];
  REQUIRE(small->poll(seen) == 4);
  REQUIRE(small->poll(seen) == 0);
  REQUIRE(first->post(request(Opcode::send, {from.part(0, 8)})) == Status::broken);
  // The others go on.
  REQUIRE(link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, true, 9), into, 0)) ==
          Status::done);
  REQUIRE(link.a.next_completion().id == 9);
}

TEST_CASE("A backing file that is shortened fails the request and not the device",
          "[soft][memory]") {
  Link link;
  Memory from(*link.a.device, 65536);
  const int file = ::memfd_create("short", MFD_CLOEXEC);
  REQUIRE(::ftruncate(file, 65536) == 0);
  void* start = ::mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  MemoryRegion region;
  REQUIRE(link.b.device->register_memory(start, 65536, access::any, Backing{file, 0}, region) ==
          Status::done);
  REQUIRE(::ftruncate(file, 4096) == 0);
  WorkRequest write = request(Opcode::write, {from.part(0, 65536)}, true, 1);
  write.remote_address = reinterpret_cast<std::uintptr_t>(start);
  write.remote_key = region.remote_key;
  REQUIRE(link.ab->post(write) == Status::done);
  REQUIRE(link.a.next_completion().status == CompletionStatus::remote_access_error);
  link.b.device->deregister_memory(region);
  ::munmap(start, 65536);
  ::close(file);
  Link still_works;
}

TEST_CASE("The program takes faults from the command line", "[soft][faults][program]") {
  Link link;
  const char* program = std::getenv("OVERLAP_SOFTDEVICE");
  REQUIRE(program != nullptr);
  const auto run = [&](const std::string& options) {
    const std::string command =
        std::string(program) + " --domain " + own_domain() + " " + options + " 2>/dev/null";
    std::string output;
    FILE* stream = ::popen(command.c_str(), "r");
    char line[256];
    while (std::fgets(line, sizeof(line), stream) != nullptr) output += line;
    const int status = ::pclose(stream);
    return std::pair{WEXITSTATUS(status), output};
  };
  const std::string number = std::to_string(link.ab->number());
  const auto [status, listed] = run("--list");
  REQUIRE(status == 0);
  REQUIRE(("\n" + listed).find("\n" + number + " " + std::to_string(link.ba->number()) + " ") !=
          std::string::npos);

  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  REQUIRE(run("--stall " + number).first == 0);
  REQUIRE(link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, true, 1), into, 0)) ==
          Status::done);
  REQUIRE(run("--link-up 5").first == 0);
  REQUIRE(link.a.is_quiet());
  REQUIRE(run("--resume " + number).first == 0);
  REQUIRE(link.a.next_completion().id == 1);
  REQUIRE(run("--stall 99999").first == 1);
  REQUIRE(run("--stall").first == 2);
  REQUIRE(run("--stall x").first == 2);
  REQUIRE(run("").first == 0);  // there is one already: nothing to do
  REQUIRE(run("--quit").first == 0);
  REQUIRE(link.a.next_event().why == "the software device process ended");
}
