// Checks of the verbs provider that need a real device, an emptied machine or a broken network:
// run.sh runs them in its guests.
//
//   verbs_check probe
//       say what try_open_verbs and open_verbs say; exit status 0 when a device was opened
//   verbs_check SCENARIO [ROUNDS]
//       two processes on this host
//   verbs_check SCENARIO listen PORT
//       one process of two on different hosts, which find each other through TCP
//   verbs_check SCENARIO HOST PORT
//       the other one
//
// Scenarios: see the table at the end. The first line of output that begins with "failed:" says
// what was wrong.
// SPDX-License-Identifier: BSD-3-Clause
#include <arpa/inet.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "opal/fabric/fabric.hpp"

namespace {

using namespace overlap::fabric;
using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const std::string& text) {
  std::printf("failed: %s\n", text.c_str());
  std::fflush(stdout);
  _exit(1);
}

void expect(bool good, const std::string& text) {
  if (!good) fail(text);
}

// --- The other process -----------------------------------------------------------------

/// A stream socket to the other process.
class Line {
 public:
  explicit Line(int descriptor) : descriptor_(descriptor) {}

  template <class T>
  void put(const T& value) const {
    expect(::send(descriptor_, &value, sizeof value, MSG_NOSIGNAL) ==
               static_cast<ssize_t>(sizeof value),
           "the other process has gone");
  }
  template <class T>
  [[nodiscard]] T get() const {
    T value{};
    expect(
        recv(descriptor_, &value, sizeof value, MSG_WAITALL) == static_cast<ssize_t>(sizeof value),
        "the other process has gone");
    return value;
  }

 private:
  int descriptor_;
};

int listen_once(const char* port) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  expect(bind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 &&
             listen(listener, 1) == 0,
         "cannot listen");
  return accept(listener, nullptr, nullptr);
}

int dial(const char* host, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(std::atoi(port)));
  inet_pton(AF_INET, host, &address.sin_addr);
  for (int left = 300; left > 0; --left) {
    const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return descriptor;
    close(descriptor);
    usleep(100000);
  }
  fail("the other host does not answer");
}

// --- One side --------------------------------------------------------------------------

constexpr std::size_t area_bytes = 1 << 16;
constexpr std::uint32_t message_bytes = 64;
constexpr std::uint32_t receive_entries = 32;

/// A device with one queue pair, connected to the other process.
struct Side {
  Line line;
  bool first;
  pid_t other;
  int rounds;
  std::unique_ptr<Device> device;
  std::vector<std::byte> area = std::vector<std::byte>(area_bytes);
  MemoryRegion region;
  std::unique_ptr<CompletionQueue> completions;
  std::unique_ptr<ReceiveQueue> receives;
  std::unique_ptr<QueuePair> queue_pair;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;

  Side(Line to, bool is_first, pid_t process, int count)
      : line(to), first(is_first), other(process), rounds(count) {
    VerbsOptions options;
    options.retry_count = 3;  // the scenarios with a broken network should not last
    options.connect_timeout_ms = 3000;
    device = open_verbs(options);
    expect(
        device->register_memory(area.data(), area.size(), access::any, {}, region) == Status::done,
        "register_memory");
    completions = device->make_completion_queue(256);
    receives = device->make_receive_queue(receive_entries);
    for (std::uint32_t i = 0; i < receive_entries; ++i) post_receive(i);
    queue_pair =
        device->make_queue_pair({.completions = completions.get(), .receives = receives.get()});
  }

  ~Side() {
    queue_pair.reset();
    receives.reset();
    completions.reset();
    device->deregister_memory(region);
  }

  /// Receive entry i has its own piece of the second half of the area.
  [[nodiscard]] std::byte* slot(std::uint64_t i) {
    return area.data() + area_bytes / 2 + i * message_bytes;
  }
  void post_receive(std::uint64_t i) {
    expect(receives->post(i, slot(i), message_bytes, region.local_key) == Status::done,
           "post receive");
  }

  [[nodiscard]] Event wait_event(int limit_s = 60) {
    const auto end = Clock::now() + std::chrono::seconds(limit_s);
    Event event;
    while (!device->poll_event(event))
      expect(Clock::now() < end, "no event within " + std::to_string(limit_s) + " s");
    return event;
  }
  void no_event_for(std::chrono::milliseconds time) {
    const auto end = Clock::now() + time;
    Event event;
    while (Clock::now() < end)
      expect(!device->poll_event(event), "one event too many: " + event.why);
  }

  [[nodiscard]] Completion wait_completion(int limit_s = 60) {
    const auto end = Clock::now() + std::chrono::seconds(limit_s);
    std::array<Completion, 1> one;
    while (completions->poll(one) == 0)
      expect(Clock::now() < end, "no completion within " + std::to_string(limit_s) + " s");
    return one[0];
  }

  void connect() {
    if (first) {
      const auto peer = line.get<Address>();
      expect(device->connect(*queue_pair, peer, {}) == Status::done, "connect");
    } else {
      line.put(device->address());
      const Event request = wait_event();
      expect(request.kind == Event::Kind::connect_request, "a connection request was expected");
      expect(device->accept(request.request, *queue_pair) == Status::done, "accept");
    }
    const Event event = wait_event();
    expect(event.kind == Event::Kind::established && event.queue_pair == queue_pair.get(),
           "not established: " + event.why);
    line.put(reinterpret_cast<std::uint64_t>(area.data()));
    line.put(region.remote_key);
    remote_address = line.get<std::uint64_t>();
    remote_key = line.get<std::uint32_t>();
  }

  void post(const WorkRequest& request) {
    expect(queue_pair->post(request) == Status::done, "post");
  }
  [[nodiscard]] WorkRequest write_request(std::uint64_t id, const void* from, std::uint32_t bytes,
                                          std::uint64_t offset, bool signalled) const {
    WorkRequest request;
    request.id = id;
    request.opcode = Opcode::write;
    request.gather_count = 1;
    request.gather[0] = {from, bytes, region.local_key};
    request.signalled = signalled;
    request.inline_data = bytes <= 64;
    request.remote_address = remote_address + offset;
    request.remote_key = remote_key;
    return request;
  }
};

// --- Scenarios -------------------------------------------------------------------------

void print_half_round_trips(const char* what, std::vector<double>& half_us) {
  std::sort(half_us.begin(), half_us.end());
  std::printf("  figure: %s: half round trip of 8 bytes, median %.1f us, p99 %.1f us of %zu\n",
              what, half_us[half_us.size() / 2], half_us[half_us.size() * 99 / 100],
              half_us.size());
}

/// 8 bytes there and back by RDMA write, found by polling memory; each value is checked.
void write_ping_pong(Side& side) {
  std::vector<double> half_us;
  auto* mine = reinterpret_cast<std::uint64_t*>(side.area.data());
  std::atomic_ref<std::uint64_t> arrived(mine[0]);
  std::array<Completion, 16> done;
  const auto wait_for = [&](std::uint64_t value) {
    const auto end = Clock::now() + std::chrono::seconds(30);
    while (arrived.load(std::memory_order_acquire) != value)
      expect(Clock::now() < end, "a write did not arrive");
  };
  for (int i = 1; i <= side.rounds; ++i) {
    const auto value = static_cast<std::uint64_t>(i) * 0x0101010101010101U;
    const auto begin = Clock::now();
    if (!side.first) wait_for(value);
    mine[8] = value;
    side.post(side.write_request(1, &mine[8], 8, 0, i % 32 == 0));
    if (side.first) wait_for(value);
    half_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2);
    for (std::size_t n = side.completions->poll(done), k = 0; k < n; ++k)
      expect(done[k].status == CompletionStatus::success, text(done[k].status));
  }
  if (side.first) print_half_round_trips("write", half_us);
}

/// The same by send and receive, found by polling completions.
void send_ping_pong(Side& side) {
  std::vector<double> half_us;
  auto* out = reinterpret_cast<std::uint64_t*>(side.area.data()) + 16;
  const auto take = [&](std::uint64_t value) {
    for (;;) {
      const Completion got = side.wait_completion(30);
      expect(got.status == CompletionStatus::success, text(got.status));
      if (got.opcode != Opcode::receive) continue;
      std::uint64_t arrived = 0;
      std::memcpy(&arrived, side.slot(got.id), sizeof arrived);
      expect(
          got.bytes == 8 && arrived == value && got.queue_pair_number == side.queue_pair->number(),
          "a wrong message arrived");
      side.post_receive(got.id);
      return;
    }
  };
  for (int i = 1; i <= side.rounds; ++i) {
    const auto value = static_cast<std::uint64_t>(i) * 0x0101010101010101U;
    const auto begin = Clock::now();
    if (!side.first) take(value);
    *out = value;
    WorkRequest request = side.write_request(2, out, 8, 0, i % 32 == 0);
    request.opcode = Opcode::send;
    side.post(request);
    if (side.first) take(value);
    half_us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - begin).count() / 2);
  }
  if (side.first) print_half_round_trips("send", half_us);
}

void ping_pong(Side& side) {
  side.connect();
  write_ping_pong(side);
  side.line.put(1);
  (void)side.line.get<int>();
  send_ping_pong(side);
  side.line.put(1);
  (void)side.line.get<int>();
}

/// A write that is not answered any more: one failed completion, one peer_lost, and posting says
/// broken from then on.
void expect_loss(Side& side, bool post_before) {
  if (post_before) {
    side.post(side.write_request(42, side.area.data(), 8, 0, true));
    const Completion end = side.wait_completion(60);
    expect(end.id == 42 && end.status != CompletionStatus::success, "the write should fail");
    std::printf("completion: %s\n", text(end.status));
  }
  const Event lost = side.wait_event(60);
  expect(lost.kind == Event::Kind::peer_lost && lost.queue_pair == side.queue_pair.get(),
         "peer_lost was expected");
  expect(!lost.why.empty(), "peer_lost has no words");
  std::printf("peer_lost: %s\n", lost.why.c_str());
  side.no_event_for(std::chrono::milliseconds(500));
  expect(
      side.queue_pair->post(side.write_request(43, side.area.data(), 8, 0, true)) == Status::broken,
      "post after the loss should say broken");
}

/// The other process is killed while both are connected and idle.
void killed(Side& side) {
  side.connect();
  if (!side.first) {
    side.line.put(static_cast<std::int64_t>(getpid()));
    pause();
  }
  const auto process = side.line.get<std::int64_t>();
  expect(side.other > 0, "only on one host");
  kill(static_cast<pid_t>(process), SIGKILL);
  expect_loss(side, false);
}

/// The other process is killed, and this one goes on writing to it.
void killed_busy(Side& side) {
  side.connect();
  if (!side.first) {
    side.line.put(static_cast<std::int64_t>(getpid()));
    pause();
  }
  const auto process = side.line.get<std::int64_t>();
  kill(static_cast<pid_t>(process), SIGKILL);
  waitpid(side.other, nullptr, 0);
  expect_loss(side, true);
}

/// This host's link goes down under a connection. Only between two hosts: rxe hands over what stays
/// on one host by itself.
void link_down(Side& side) {
  side.connect();
  if (side.first) {
    expect(std::system("ip link set eth0 down") == 0, "ip link set eth0 down");
    expect_loss(side, true);
    expect(std::system("ip link set eth0 up") == 0, "ip link set eth0 up");
    side.line.put(1);
  } else {
    (void)side.line.get<int>();  // it comes when the link is up again
  }
}

/// A host that does not exist is unreachable after the timeout, and a port of a host that nobody
/// listens on at once.
void nobody(Side& side) {
  if (!side.first) return;
  const auto expect_unreachable = [&](QueuePair& queue_pair, const Address& peer) {
    expect(side.device->connect(queue_pair, peer, {}) == Status::done, "connect");
    const Event end = side.wait_event(60);
    expect(end.kind == Event::Kind::unreachable && end.queue_pair == &queue_pair,
           "unreachable was expected");
    std::printf("unreachable: %s\n", end.why.c_str());
    expect(queue_pair.post(side.write_request(1, side.area.data(), 8, 0, true)) == Status::broken,
           "post should say broken");
  };
  // In an address the port stands at 6, IPv4's last byte at 23 (wire.cpp).
  Address other_host = side.device->address();
  other_host.bytes[23] = std::byte{77};
  expect_unreachable(*side.queue_pair, other_host);
  Address other_port = side.device->address();
  other_port.bytes[6] = other_port.bytes[7] = std::byte{1};
  const auto second = side.device->make_queue_pair(
      {.completions = side.completions.get(), .receives = side.receives.get()});
  expect_unreachable(*second, other_port);
}

struct Scenario {
  const char* name;
  void (*run)(Side&);
  bool other_survives;
};

constexpr std::array<Scenario, 5> scenarios = {{
    {"pingpong", ping_pong, true},        // writes and sends, their bytes and their times
    {"killed", killed, false},            // an idle peer is killed
    {"killed-busy", killed_busy, false},  // a peer that is written to is killed
    {"nobody", nobody, true},             // connecting to where nobody is
    {"link-down", link_down, true},       // the network goes away
}};

// --- Main ------------------------------------------------------------------------------

const char* kind_name(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::no_device: return "no_device";
    case Error::Kind::no_permission: return "no_permission";
    case Error::Kind::memory_limit: return "memory_limit";
    case Error::Kind::bad_option: return "bad_option";
    case Error::Kind::system: return "system";
  }
  return "?";
}

int probe(const char* device) {
  VerbsOptions options;
  options.device = device;
  try {
    std::string why;
    std::unique_ptr<Device> opened = try_open_verbs(options, why);
    std::printf("find: %s%s\n", opened != nullptr ? "yes" : "no: ", why.c_str());
    std::fflush(stdout);
    if (opened == nullptr) opened = open_verbs(options);
    const Capabilities& can = opened->capabilities();
    std::printf(
        "open: %s inline %u gather %u message %llu send %u receive %u completion %u atomics %d/%d "
        "rnr %d rate %u fork %d\n",
        can.name.c_str(), can.inline_max_bytes, can.gather_max,
        static_cast<unsigned long long>(can.message_max_bytes), can.send_queue_max,
        can.receive_queue_max, can.completion_queue_max, can.atomics, can.atomics_global,
        can.receive_not_ready, can.bandwidth_mbytes_s, can.fork_safe);
    std::vector<std::byte> area(1 << 20);
    MemoryRegion region;
    errno = 0;
    const Status status =
        opened->register_memory(area.data(), area.size(), access::any, {}, region);
    std::printf("register: 1 MiB %s\n", status == Status::done ? "done" : std::strerror(errno));
    opened->deregister_memory(region);
    return 0;
  } catch (const Error& error) {
    std::printf("open: %s: %s\n", kind_name(error.kind), error.what());
    return 1;
  }
}

/// Two that spin must not share a processor: they would take turns by time slices.
void pin(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  (void)sched_setaffinity(0, sizeof set, &set);
}

int two_processes(const Scenario& scenario, int rounds) {
  std::array<int, 2> ends{};
  expect(socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0, "socketpair");
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    pin(1);
    Side side(Line(ends[1]), false, 0, rounds);
    scenario.run(side);
    return 0;
  }
  close(ends[1]);
  pin(0);
  {
    Side side(Line(ends[0]), true, child, rounds);
    scenario.run(side);
  }
  int status = 0;
  if (scenario.other_survives)
    expect(waitpid(child, &status, 0) == child && status == 0, "the other process failed");
  std::printf("good\n");
  return 0;
}

int two_hosts(const Scenario& scenario, const char* host, const char* port) {
  const bool listens = std::strcmp(host, "listen") == 0;
  Side side(Line(listens ? listen_once(port) : dial(host, port)), !listens, 0, 300);
  scenario.run(side);
  std::printf("good\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  if (argc >= 2 && std::strcmp(argv[1], "probe") == 0) return probe(argc > 2 ? argv[2] : "");
  for (const Scenario& scenario : scenarios) {
    if (argc < 2 || std::strcmp(argv[1], scenario.name) != 0) continue;
    try {
      return argc >= 4 ? two_hosts(scenario, argv[2], argv[3])
                       : two_processes(scenario, argc > 2 ? std::atoi(argv[2]) : 1000);
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  std::fprintf(stderr,
               "usage: verbs_check probe [DEVICE] | SCENARIO [ROUNDS] | SCENARIO listen PORT | "
               "SCENARIO HOST PORT\n");
  return 2;
}
