// Processes for tests of the helper, without MPI:
//
//   fake_client receive HELPER        wait for messages: prints its address, then what happens
//   fake_client send ADDRESS          a message for it: prints what a sender has to do
//   fake_client garbage HELPER MS     nonsense in messages and in areas
//   fake_client flood HELPER COUNT    connections that say nothing, for a second
//   fake_client measure HELPER COUNT  what a wake costs its sender, and how long it takes
//   fake_client start PROGRAM HELPER  start a helper as a process does that needs one
//   fake_client squat USER HELPER     take the name of another user's helper, for ten seconds
//
// HELPER is the helper's --name.
// SPDX-License-Identifier: BSD-3-Clause
#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "opal/mca/common/overlap/node/bell.hpp"
#include "opal/mca/common/overlap/node/helper_client.hpp"
#include "opal/mca/common/overlap/node/helper_start.hpp"
#include "opal/mca/common/overlap/node/wake.hpp"

namespace {

using namespace overlap;
using namespace overlap::node;

constexpr Envelope message{.kind = WaitKind::message, .context = 1, .source = 2, .tag = 3};

std::uint64_t now_ms(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1000U +
         static_cast<std::uint64_t>(now.tv_nsec) / 1'000'000U;
}

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

const char* word_of(HelperClient::State state) {
  switch (state) {
    case HelperClient::State::none: return "none";
    case HelperClient::State::asked: return "asked";
    case HelperClient::State::served: return "served";
    case HelperClient::State::absent: return "absent";
    case HelperClient::State::refused: return "refused";
    case HelperClient::State::gone: return "gone";
  }
  return "unknown";
}

int receive(const std::string& which) {
  const MappedArea area = MappedArea::make();
  Bell bell;
  if (!area || !bell.open(*area.get())) return 1;
  Waits waits(area.get());
  static_cast<void>(waits.add(message));
  HelperClient helper;
  helper.ask({.job = static_cast<std::uint64_t>(getpid()), .local_rank = 0}, area, bell.ringing(),
             which);
  const auto address = DescriptorAddress::of(area.file());
  if (!address) return 1;
  say(word_of(helper.await_answer(5000)));
  std::printf("address %d:%d:%llu:%llu\n", address->pid, address->descriptor,
              static_cast<unsigned long long>(address->device),
              static_cast<unsigned long long>(address->inode));
  std::fflush(stdout);
  for (;;) {
    area->doze.store(Doze::armed);
    helper.nudge();
    pollfd set[] = {{bell.descriptors()[0], POLLIN, 0}, {helper.descriptor(), POLLIN, 0}};
    if (poll(set, 2, -1) < 0) return 1;
    if (set[0].revents != 0 && bell.silence()) say("rung");
    if (set[1].revents == 0) continue;
    const HelperClient::State state = helper.look();
    if (state == HelperClient::State::gone) stop_watching(*area.get());
    say(word_of(state));
  }
}

int send(const char* text) {
  DescriptorAddress address;
  unsigned long long device = 0;
  unsigned long long inode = 0;
  if (std::sscanf(text, "%d:%d:%llu:%llu", &address.pid, &address.descriptor, &device, &inode) != 4)
    return 1;
  address.device = device;
  address.inode = inode;
  const MappedArea area = MappedArea::map(address.open(O_RDWR));
  if (!area) {
    say("gone");
    return 0;
  }
  const auto now = static_cast<std::uint32_t>(now_ms(CLOCK_MONOTONIC_COARSE));
  const WakeDecision decision = decide_wake(*area.get(), message, now);
  if (decision == WakeDecision::hand_on && try_leave(*area.get(), message)) {
    say("handed on");
    return 0;
  }
  if (decision == WakeDecision::nothing) {
    say("nothing");
    return 0;
  }
  // decide_wake() or this call has claimed it.
  static_cast<void>(claim_wake(*area.get()));
  BellRope::to(*area.get()).ring();
  say("rang");
  return 0;
}

int garbage(const std::string& which, std::uint64_t ms) {
  std::mt19937_64 random(static_cast<std::uint64_t>(getpid()));
  std::vector<MappedArea> areas;
  for (int i = 0; i < 8; ++i) areas.push_back(MappedArea::make());
  std::vector<HelperClient> clients(areas.size());
  const std::uint64_t end = now_ms(CLOCK_MONOTONIC) + ms;
  unsigned long long messages = 0;
  while (now_ms(CLOCK_MONOTONIC) < end) {
    const std::size_t at = random() % areas.size();
    MappedArea& area = areas[at];
    if (clients[at].look() != HelperClient::State::served) {
      area = MappedArea::make();
      clients[at].ask({}, area, Descriptor(), which);
      static_cast<void>(clients[at].await_answer(100));
    }
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(area.get());
    for (int i = 0; i < 100; ++i) words[random() % (sizeof(Area) / 8)] = random();
    if (random() % 2 == 0) area->doze = Doze::armed;
    clients[at].nudge();
    const Descriptor socket = connect_to(helper_socket_name(geteuid(), which));
    HelperRequest request;
    request.ask = static_cast<HelperAsk>(random() % 4);
    unsigned char bytes[4096];
    for (unsigned char& each : bytes) each = static_cast<unsigned char>(random());
    std::memcpy(bytes, &request, random() % (sizeof request + 1));
    const int attached[] = {area.file().get(), STDIN_FILENO};
    if (socket && detail::send_bytes(socket, bytes,
                                     random() % 3 == 0 ? sizeof request : random() % sizeof bytes,
                                     attached, random() % 3) == Delivery::done)
      ++messages;
  }
  std::printf("%llu messages\n", messages);
  return 0;
}

int flood(const std::string& which, int count) {
  std::vector<Descriptor> sockets;
  for (int i = 0; i < count; ++i) {
    Descriptor socket = connect_to(helper_socket_name(geteuid(), which));
    if (socket) sockets.push_back(std::move(socket));
  }
  std::printf("%zu connections\n", sockets.size());
  std::fflush(stdout);
  poll(nullptr, 0, 1000);
  return 0;
}

std::uint64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

/// Times of one way to wake a thread.
struct Times {
  std::vector<std::uint64_t> sender_ns;
  std::vector<std::uint64_t> wake_ns;
};

void print(const char* way, Times& times) {
  if (times.sender_ns.empty()) return;
  const auto median = [](std::vector<std::uint64_t>& all) {
    std::sort(all.begin(), all.end());
    return static_cast<double>(all[all.size() / 2]) / 1000.0;
  };
  std::printf("%-12s %6zu wakes, median: sender %6.2f us, until awake %6.2f us\n", way,
              times.sender_ns.size(), median(times.sender_ns), median(times.wake_ns));
}

/// As interrupt threads do: a thread that wakes goes before one that computes.
void ask_for_short_slice() {
  struct {  // sched_attr, which libraries do not name
    std::uint32_t bytes = 48, policy = 0;
    std::uint64_t flags = 0;
    std::int32_t nice = 0;
    std::uint32_t priority = 0;
    std::uint64_t slice_ns = 100'000, deadline_ns = 0, period_ns = 0;
  } attributes;
  static_assert(sizeof attributes == 48);
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

/// A thread of this process waits, this thread sends, in turn by the helper and by itself, and then
/// computes until the other one is awake.
int measure(const std::string& which, int count) {
  const MappedArea area = MappedArea::make();
  Bell bell;
  if (!area || !bell.open(*area.get())) return 1;
  Waits waits(area.get());
  static_cast<void>(waits.add(message));
  HelperClient helper;
  helper.ask({}, area, bell.ringing(), which);
  say(word_of(helper.await_answer(5000)));
  std::atomic<std::uint64_t> awake_ns{0};
  std::atomic<bool> is_armed{false};
  std::atomic<bool> ending{false};
  std::thread receiver([&] {
    ask_for_short_slice();
    while (!ending) {
      area->doze.store(Doze::armed);
      helper.nudge();
      pollfd one{bell.descriptors()[0], POLLIN, 0};
      is_armed = true;
      static_cast<void>(poll(&one, 1, -1));
      const std::uint64_t rung_ns = now_ns();
      is_armed = false;
      static_cast<void>(bell.silence());
      awake_ns = rung_ns;
      while (awake_ns != 0 && !ending) poll(nullptr, 0, 1);
    }
  });
  const BellRope rope = BellRope::to(*area.get());
  Times by_helper;
  Times by_sender;
  for (int i = 0; i < count; ++i) {
    while (!is_armed) poll(nullptr, 0, 1);
    poll(nullptr, 0, 3);  // the receiver sleeps by now, and the helper watches
    const bool rings = i % 2 == 0;
    const std::uint64_t begin_ns = now_ns();
    const auto clock_ms = static_cast<std::uint32_t>(now_ms(CLOCK_MONOTONIC_COARSE));
    const bool handed = !rings &&
                        decide_wake(*area.get(), message, clock_ms) == WakeDecision::hand_on &&
                        try_leave(*area.get(), message);
    if (!handed) {
      static_cast<void>(claim_wake(*area.get()));
      rope.ring();
    }
    const std::uint64_t sent_ns = now_ns();
    while (awake_ns == 0) {}
    Times& times = handed ? by_helper : by_sender;
    if (handed || rings) {
      times.sender_ns.push_back(sent_ns - begin_ns);
      times.wake_ns.push_back(awake_ns - begin_ns);
    }
    awake_ns = 0;
  }
  ending = true;
  rope.ring();
  receiver.join();
  print("by helper", by_helper);
  print("by sender", by_sender);
  return 0;
}

int squat(uid_t user, const std::string& which) {
  const Descriptor socket = listen_at(helper_socket_name(user, which));
  say(socket ? "taken" : "refused");
  poll(nullptr, 0, 10'000);
  return 0;
}

int start(const std::string& program, const std::string& which) {
  const HelperStart started = start_helper(program, which);
  say(started == HelperStart::runs ? "runs" : "failed");
  return 0;
}

int run(const std::vector<std::string>& words) {
  const std::string command = words.empty() ? "" : words[0];
  if (command == "receive" && words.size() == 2) return receive(words[1]);
  if (command == "send" && words.size() == 2) return send(words[1].c_str());
  if (command == "garbage" && words.size() == 3)
    return garbage(words[1], std::strtoull(words[2].c_str(), nullptr, 10));
  if (command == "flood" && words.size() == 3) return flood(words[1], std::atoi(words[2].c_str()));
  if (command == "measure" && words.size() == 3)
    return measure(words[1], std::atoi(words[2].c_str()));
  if (command == "start" && words.size() == 3) return start(words[1], words[2]);
  if (command == "squat" && words.size() == 3)
    return squat(static_cast<uid_t>(std::atoi(words[1].c_str())), words[2]);
  std::fputs("usage: see the head of fake_client.cpp\n", stderr);
  return 2;
}

}  // namespace

int main(int count, char** arguments) {
  try {
    return run({arguments + 1, arguments + count});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fake_client: %s\n", error.what());
    return 1;
  }
}
