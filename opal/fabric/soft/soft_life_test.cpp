// The life of the device process: its start and end, who holds on to what, whom it wakes, and what
// clients see when it is killed.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_faults.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>

#include <array>
#include <cstring>

#include "control.hpp"
#include "opal/fabric/contract.hpp"
#include "opal/fabric/management_queue.hpp"
#include "test/support/catch.hpp"

using namespace overlap::fabric;
using namespace overlap::fabric::contract;
using soft::SoftFaults;

namespace {

SoftOptions in_domain(const std::string& domain, std::uint32_t node = 0) {
  SoftOptions options;
  options.domain = domain;
  options.node = node;
  return options;
}

/// Process of a domain's device; it must be running.
int device_process(const std::string& domain = own_domain()) {
  const soft::Descriptor socket = soft::connect_to(soft::socket_name(domain));
  REQUIRE(socket);
  int pid = 0;
  REQUIRE(soft::is_same_user(socket.get(), pid));
  return pid;
}

bool runs(const std::string& domain) {
  return static_cast<bool>(soft::connect_to(soft::socket_name(domain)));
}

/// Device instance in an address.
std::uint64_t instance(const Address& address) {
  std::uint64_t value = 0;
  std::memcpy(&value, address.bytes.data(), sizeof(value));
  return value;
}

}  // namespace

TEST_CASE("Bad options are refused in words", "[soft][open]") {
  SoftOptions options = in_domain(own_domain());
  options.bandwidth_mbytes_s = 0;
  REQUIRE_THROWS_AS(open_soft(options), Error);
  options = in_domain(own_domain());
  options.task_ns = 1'000'000'001;
  REQUIRE_THROWS_AS(open_soft(options), Error);
  options = in_domain(std::string(65, 'x'));
  REQUIRE_THROWS_AS(open_soft(options), Error);
  options = in_domain(own_domain() + ".none");
  options.program = "/nonexistent/overlap-softdevice";
  try {
    static_cast<void>(open_soft(options));
    FAIL("opened without a program");
  } catch (const Error& error) {
    REQUIRE(error.kind == Error::Kind::system);
    REQUIRE(std::string(error.what()).find("/nonexistent/overlap-softdevice") != std::string::npos);
  }
}

TEST_CASE("Many processes that start at once find one device, which ends with them",
          "[soft][open][fork]") {
  const std::string domain = own_domain() + ".crowd";
  for (int round = 0; round < 3; ++round) {
    std::vector<std::unique_ptr<Child>> children;
    for (std::uint32_t i = 0; i < 8; ++i) {
      children.push_back(std::make_unique<Child>([&](const Child& parent) {
        static_cast<void>(parent.hear<char>());
        const auto device = open_soft(in_domain(domain, i));
        parent.tell(device->address());
        static_cast<void>(parent.hear<char>());
      }));
    }
    for (auto& child : children) child->tell('g');
    std::uint64_t first = 0;
    for (auto& child : children) {
      const std::uint64_t own = instance(child->hear<Address>());
      if (first == 0) first = own;
      REQUIRE(own == first);
    }
    REQUIRE(runs(domain));
    for (std::size_t i = 0; i < children.size(); ++i) {
      if (i % 2 == 0) {
        children[i]->kill_and_wait();  // a crash counts as leaving
      } else {
        children[i]->tell('q');
        REQUIRE(children[i]->wait() == 0);
      }
    }
    // In the last round nobody comes back: it ends by itself.
    if (round == 2) await("the end of the device process", [&] { return !runs(domain); });
  }
}

TEST_CASE("Opening again while the device is about to end always succeeds", "[soft][open]") {
  const std::string domain = own_domain() + ".again";
  for (int i = 0; i < 12; ++i) {
    const auto device = open_soft(in_domain(domain));
    REQUIRE(device->address().size_bytes > 0);
    // Around the time for which a device waits for new users.
    const timespec nap{0, 190'000'000 + i * 2'000'000};
    if (i >= 4) {
      auto gone = open_soft(in_domain(domain));
      gone.reset();
    }
    if (i % 2 == 0) ::nanosleep(&nap, nullptr);
  }
}

TEST_CASE("The device process holds on to nothing of its starter", "[soft][open][fork]") {
  const std::string domain = own_domain() + ".apart";
  int output[2];
  REQUIRE(::pipe(output) == 0);
  Child child([&](const Child& parent) {
    ::dup2(output[1], 1);
    ::dup2(output[1], 2);
    ::dup2(output[1], 77);
    ::close(output[0]);
    ::close(output[1]);
    const auto device = open_soft(in_domain(domain));
    parent.tell('r');
    static_cast<void>(parent.hear<char>());
  });
  ::close(output[1]);
  static_cast<void>(child.hear<char>());
  const auto stays = open_soft(in_domain(domain));  // keeps the device process
  child.tell('q');
  REQUIRE(child.wait() == 0);
  // Whoever reads our output sees its end although the device process lives.
  pollfd end{output[0], POLLIN, 0};
  REQUIRE(::poll(&end, 1, patience_s * 1000) == 1);
  char byte = 0;
  REQUIRE(::read(output[0], &byte, 1) == 0);
  ::close(output[0]);
  REQUIRE(runs(domain));
}

TEST_CASE("The device process is scheduled with its starter's session, in a group of its own",
          "[soft][open]") {
  const std::string domain = own_domain() + ".session";
  const auto device = open_soft(in_domain(domain));
  const int pid = device_process(domain);
  CHECK(::getsid(pid) == ::getsid(0));
  CHECK(::getpgid(pid) != ::getpgrp());
}

TEST_CASE("When the device process is killed, everybody learns it and nothing hangs",
          "[soft][end]") {
  Link link;
  Endpoint c(2);
  auto asking = c.make_pair();
  REQUIRE(c.device->connect(*asking, link.b.device->address(), PrivateData{}) == Status::done);
  Memory from(*link.a.device, 1U << 20U);
  Memory into(*link.b.device, 1U << 20U);
  REQUIRE(link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, true, 1), into, 0)) ==
          Status::done);
  await("a write",
        [&] { return SoftFaults(own_domain()).list().size() == 3 && !link.a.is_quiet(); });
  for (std::uint64_t id = 2; id < 6; ++id) {
    REQUIRE(link.ab->post(request(Opcode::send, {from.part(0, 8)}, id == 5, id)) == Status::done);
  }
  ::kill(device_process(), SIGKILL);

  // Whoever only polls for completions learns it from them.
  for (std::uint64_t id = 2; id < 6; ++id) {
    const Completion completion = link.a.next_completion();
    REQUIRE(completion.id == id);
    REQUIRE(completion.status == CompletionStatus::flushed);
  }
  REQUIRE(link.ab->post(request(Opcode::send, {from.part(0, 8)})) == Status::broken);
  const Event at_a = link.a.next_event();
  REQUIRE(at_a.kind == Event::Kind::peer_lost);
  REQUIRE(at_a.queue_pair == link.ab.get());
  REQUIRE(at_a.why == "the software device process ended");
  REQUIRE(link.b.next_event().kind == Event::Kind::connect_request);
  const Event at_b = link.b.next_event();
  REQUIRE(at_b.kind == Event::Kind::peer_lost);
  const Event at_c = c.next_event();
  REQUIRE(at_c.kind == Event::Kind::unreachable);
  REQUIRE(at_c.why == "the software device process ended");
  REQUIRE(link.b.receives->post(1, into.at(0), 8, into.region().local_key) == Status::broken);
  MemoryRegion region;
  REQUIRE(link.a.device->register_memory(from.at(0), 8, access::any, Backing{}, region) ==
          Status::broken);
  REQUIRE_THROWS_AS(link.a.make_pair(), Error);

  // A new one starts for whoever opens now.
  Link fresh;
  REQUIRE(instance(fresh.a.device->address()) != instance(link.a.device->address()));
}

namespace {

/// Whether or not it is armed.
bool is_readable(const Device& device, int timeout_ms) {
  pollfd sleeper{device.arrival_descriptor(), POLLIN, 0};
  return ::poll(&sleeper, 1, timeout_ms) == 1;
}

}  // namespace

TEST_CASE("The end of the device process wakes a thread that sleeps, until the client knows it",
          "[soft][end][arrivals]") {
  Link link;
  Memory from(*link.a.device, 4096);
  REQUIRE(link.ab->post(request(Opcode::send, {from.part(0, 8)}, true, 1)) == Status::done);
  const int descriptor = link.a.device->arrival_descriptor();
  link.a.device->arm_arrivals();
  REQUIRE_FALSE(is_readable(*link.a.device, 0));
  ::kill(device_process(), SIGKILL);
  REQUIRE(is_readable(*link.a.device, patience_s * 1000));
  // Its sockets close one after the other.
  await("quiet", [&] {
    link.a.device->arm_arrivals();
    return !is_readable(*link.a.device, 0);
  });
  Completion completion;
  REQUIRE(link.a.completions->poll({&completion, 1}) == 1);
  REQUIRE(completion.status == CompletionStatus::flushed);
  REQUIRE(link.a.device->arrival_descriptor() == descriptor);
  link.a.device->arm_arrivals();
  REQUIRE_FALSE(is_readable(*link.a.device, 0));
}

TEST_CASE("The end of the device process flushes task lists and wakes who sleeps for them",
          "[soft][end][management]") {
  Endpoint a(0);
  const auto arrived = a.device->make_counting_queue();
  const auto queue = a.device->make_management_queue(8);
  Task wait;
  wait.queue = arrived.get();
  wait.count = 1;
  const std::array twice{wait, wait};
  REQUIRE(queue->post(1, twice).status == Status::done);
  REQUIRE(queue->post(2, {&wait, 1}).status == Status::done);
  a.device->arm_arrivals();
  ::kill(device_process(), SIGKILL);
  REQUIRE(is_readable(*a.device, patience_s * 1000));
  for (std::uint64_t id = 1; id <= 2; ++id) {
    Completion completion;
    await("a list", [&] { return queue->completions().poll({&completion, 1}) == 1; });
    REQUIRE(completion.id == id);
    REQUIRE(completion.status == CompletionStatus::flushed);
  }
  REQUIRE(queue->post(3, {&wait, 1}).status == Status::broken);
  REQUIRE_THROWS_AS(a.device->make_management_queue(8), Error);
}

TEST_CASE("Requests that fail because the device process does not answer wake their poster",
          "[soft][end][arrivals]") {
  const std::string domain = own_domain() + ".dumb";
  SoftOptions options = in_domain(domain);
  options.device_timeout_ms = 300;
  const auto device = open_soft(options);
  const auto completions = device->make_completion_queue(16);
  const auto receives = device->make_receive_queue(16);
  const QueuePairOptions queues{.completions = completions.get(), .receives = receives.get()};
  const auto asking = device->make_queue_pair(queues);
  const auto answering = device->make_queue_pair(queues);
  const auto next_event = [&] {
    Event event;
    await("an event", [&] { return device->poll_event(event); });
    return event;
  };
  REQUIRE(device->connect(*asking, device->address(), PrivateData{}) == Status::done);
  REQUIRE(device->accept(next_event().request, *answering) == Status::done);
  for (int end = 0; end < 2; ++end) REQUIRE(next_event().kind == Event::Kind::established);
  REQUIRE(asking->post(request(Opcode::send, {}, true, 1)) == Status::done);
  device->arm_arrivals();
  const int pid = device_process(domain);
  REQUIRE(::kill(pid, SIGSTOP) == 0);  // nothing below may leave it so
  CHECK_FALSE(is_readable(*device, 0));
  MemoryRegion region;
  std::vector<unsigned char> bytes(4096);
  CHECK(device->register_memory(bytes.data(), bytes.size(), access::any, Backing{}, region) ==
        Status::broken);
  CHECK(is_readable(*device, 0));
  device->arm_arrivals();
  CHECK_FALSE(is_readable(*device, 0));
  Completion completion;
  CHECK(completions->poll({&completion, 1}) == 1);
  CHECK(completion.status == CompletionStatus::flushed);
  ::kill(pid, SIGKILL);
}

TEST_CASE("A client that never takes its wake-ups, or takes them away, stops nobody",
          "[soft][arrivals]") {
  Link link;
  const auto send = [&] {
    REQUIRE(link.b.receives->post(1, nullptr, 0, 0) == Status::done);
    WorkRequest message = request(Opcode::send, {}, true, 1);
    message.solicited = true;
    REQUIRE(link.ab->post(message) == Status::done);
    REQUIRE(link.b.next_completion().status == CompletionStatus::success);
    REQUIRE(link.a.next_completion().status == CompletionStatus::success);
  };
  const int descriptor = link.b.device->arrival_descriptor();
  int waiting = 0;
  link.b.device->arm_arrivals();
  for (int i = 0; i < 3; ++i) send();
  REQUIRE(::ioctl(descriptor, FIONREAD, &waiting) == 0);
  REQUIRE(waiting == 1);  // the device disarmed it with the first
  link.b.device->arm_arrivals();
  REQUIRE(::ioctl(descriptor, FIONREAD, &waiting) == 0);
  REQUIRE(waiting == 0);
  const int other = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  // Arming empties something else: the bytes pile up, more than the socket takes.
  const int kept = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
  REQUIRE((other >= 0 && kept >= 0));
  REQUIRE(::fcntl(kept, F_SETFL, 0) == 0);  // blocking, as far as a client can have it so
  REQUIRE(::dup2(other, descriptor) == descriptor);
  for (int i = 0; i < 1000; ++i) {
    link.b.device->arm_arrivals();
    send();
  }
  REQUIRE(::ioctl(kept, FIONREAD, &waiting) == 0);
  REQUIRE(waiting > 0);
  REQUIRE(waiting < 1000);  // it was full
  // The other end of the device's socket is gone.
  ::close(kept);
  for (int i = 0; i < 3; ++i) {
    link.b.device->arm_arrivals();
    send();
  }
  ::close(other);
  Link still_works;
}

TEST_CASE("Events that found no room in the socket wake who sleeps when they come",
          "[soft][arrivals]") {
  Link link;
  constexpr int requests = 1000;  // more than the socket takes
  for (int i = 0; i < requests; ++i) {
    const auto gone = link.a.make_pair(1);
    REQUIRE(link.a.device->connect(*gone, link.b.device->address(), PrivateData{}) == Status::done);
  }
  Event event;
  int taken = 0;
  const auto take_all = [&] {
    for (; link.b.device->poll_event(event); ++taken)
      CHECK(event.kind == Event::Kind::connect_request);
  };
  const int pid = device_process();
  REQUIRE(::kill(pid, SIGSTOP) == 0);  // nothing below may leave it so
  link.b.device->arm_arrivals();
  take_all();
  CHECK(taken > 0);
  CHECK(taken < requests);
  link.b.device->arm_arrivals();
  CHECK_FALSE(is_readable(*link.b.device, 0));
  ::kill(pid, SIGCONT);
  CHECK(is_readable(*link.b.device, patience_s * 1000));
  await("the other requests", [&] {
    take_all();
    return taken == requests;
  });
}

// Its own poster computes nothing while it polls: the device is better off beside it.
TEST_CASE("A process that is two clients does not pull the device to where it posts",
          "[soft][doorbell]") {
  cpu_set_t all;
  REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
  if (CPU_COUNT(&all) < 2) return;
  Link link;  // both ends are this process
  const auto here = static_cast<std::size_t>(::sched_getcpu());
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(here, &own);
  REQUIRE(::sched_setaffinity(0, sizeof own, &own) == 0);
  Memory from(*link.a.device, 4096);
  Memory into(*link.b.device, 4096);
  const int pid = device_process();
  for (std::uint64_t id = 0; id < 2000; ++id) {
    // The device naps as long as somebody waits.
    Completion completion;
    for (int i = 0; i < 64; ++i) REQUIRE(link.b.completions->poll({&completion, 1}) == 0);
    REQUIRE(link.ab->post(to(request(Opcode::write, {from.part(0, 8)}, true, id), into, 0)) ==
            Status::done);
    await("the completion", [&] {
      return link.b.completions->poll({&completion, 1}) == 0 &&
             link.a.completions->poll({&completion, 1}) == 1;
    });
    cpu_set_t allowed;
    REQUIRE(::sched_getaffinity(pid, sizeof allowed, &allowed) == 0);
    REQUIRE_FALSE(CPU_EQUAL(&allowed, &own));
  }
  REQUIRE(::sched_setaffinity(0, sizeof all, &all) == 0);
}

TEST_CASE("A device process that does not answer is given up with a reason", "[soft][end]") {
  const std::string domain = own_domain() + ".silent";
  SoftOptions options = in_domain(domain);
  options.device_timeout_ms = 300;
  const auto device = open_soft(options);
  const auto completions = device->make_completion_queue(16);
  int pid = 0;
  {
    const soft::Descriptor socket = soft::connect_to(soft::socket_name(domain));
    REQUIRE(soft::is_same_user(socket.get(), pid));
  }
  REQUIRE(::kill(pid, SIGSTOP) == 0);
  std::vector<unsigned char> bytes(4096);
  MemoryRegion region;
  CHECK(device->register_memory(bytes.data(), bytes.size(), access::any, Backing{}, region) ==
        Status::broken);
  try {
    static_cast<void>(device->make_completion_queue(16));
    FAIL("made by a device that stands still");
  } catch (const Error& error) {
    CHECK(std::string(error.what()).find("does not answer") != std::string::npos);
  }
  ::kill(pid, SIGKILL);
}
