// Sleep, wake, inherit, die: the module ompi_wake with few processes, and the class KernelWake.
// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>

#include <array>
#include <iterator>
#include <thread>

#include "opal/mca/common/overlap/wake/kernel_wake.hpp"
#include "test/vm/wake_check.hpp"

namespace wake_check {
namespace {

// --- Sleeping and waking ---------------------------------------------------------------

void wakes_exactly_one() {
  constexpr unsigned sleepers = 8;
  struct Report {
    std::uint32_t rank;
    std::uint64_t wakes;
  };
  int reports[2];
  expect(pipe(reports) == 0, "pipe");
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < sleepers; ++rank) {
    children.push_back(in_child([&] {
      const File file = joined(1, rank);
      for (;;) {
        const Report report{rank, file.read()};
        expect(::write(reports[1], &report, sizeof report) == sizeof report, "report");
      }
    }));
  }
  for (const Child& child : children) child.await_asleep();
  const File observer = observing(1);
  const auto sleeps = [&](unsigned rank) { return children[rank].voluntary_switches(); };
  for (std::uint32_t round = 0; round < 3 * sleepers; ++round) {
    const std::uint32_t rank = round * 5 % sleepers;
    std::vector<long> before;
    for (unsigned each = 0; each < sleepers; ++each) before.push_back(sleeps(each));
    expect(observer.try_wake({rank}) == 0, "wake");
    Report report{};
    expect(::read(reports[0], &report, sizeof report) == sizeof report, "no report");
    expect(report.rank == rank && report.wakes == 1, "another one woke");
    children[rank].await_asleep();
    for (unsigned each = 0; each < sleepers; ++each) {
      expect((sleeps(each) != before[each]) == (each == rank), "an idle rank left its sleep");
    }
  }
}

void early_wakes_are_kept() {
  const File file = joined(1, 3);
  const File other = joined(1, 4);
  for (int i = 0; i < 3; ++i) expect(other.try_wake({3}) == 0, "wake");
  expect(file.read() == 3, "not all wakes were counted");
  file.set_nonblocking(true);
  expect(file.try_read() == -EAGAIN, "the count was not reset");
  expect(file.try_wake({3, 4, 3}) == 0, "wake several, oneself too");
  expect(file.read() == 2 && other.read() == 1, "each rank its wakes");
}

void nonblocking_and_back() {
  const File file = joined(1, 0);
  file.set_nonblocking(true);
  expect(file.try_read() == -EAGAIN, "a read without wakes");
  file.set_nonblocking(false);
  const Child child = in_child([&] { expect(file.read() == 1, "woken"); });
  child.await_asleep();
  expect(file.try_wake({0}) == 0, "wake");
  child.expect_done();
}

void polls() {
  const File early;  // watched before it joins
  const int set = epoll_create1(0);
  epoll_event watched{.events = EPOLLIN | EPOLLET, .data = {.u32 = 7}};
  expect(epoll_ctl(set, EPOLL_CTL_ADD, early.fd(), &watched) == 0, "epoll_ctl");
  pollfd entry{.fd = early.fd(), .events = POLLIN | POLLOUT, .revents = 0};
  expect(poll(&entry, 1, 0) == 0, "ready before it joined");
  expect(early.try_join(1, 0) == 0, "join");
  expect(poll(&entry, 1, 0) == 1 && entry.revents == POLLOUT, "joined: writable only");
  const File other = joined(1, 1);
  epoll_event found{};
  expect(epoll_wait(set, &found, 1, 0) == 0, "an edge from nothing");

  expect(other.try_wake({1}) == 0, "wake oneself");
  expect(epoll_wait(set, &found, 1, 0) == 0 && poll(&entry, 1, 0) == 1 && entry.revents == POLLOUT,
         "another rank's wake is seen");
  for (int edge = 0; edge < 3; ++edge) {
    expect(other.try_wake({0}) == 0, "wake");
    expect(epoll_wait(set, &found, 1, -1) == 1 && found.data.u32 == 7, "no edge");
    expect(epoll_wait(set, &found, 1, 0) == 0, "an edge twice");
    expect(poll(&entry, 1, 0) == 1 && entry.revents == (POLLIN | POLLOUT), "not readable");
  }
  fd_set readable;
  FD_ZERO(&readable);
  FD_SET(early.fd(), &readable);
  expect(select(early.fd() + 1, &readable, nullptr, nullptr, nullptr) == 1, "select");
  expect(early.read() == 3, "the count of three edges");
  expect(poll(&entry, 1, 0) == 1 && entry.revents == POLLOUT, "readable after the read");

  const Child child = in_child([&] {
    const int own = epoll_create1(0);
    epoll_event level{.events = EPOLLIN, .data = {.u32 = 9}};
    expect(epoll_ctl(own, EPOLL_CTL_ADD, early.fd(), &level) == 0, "epoll_ctl");
    epoll_event seen{};
    expect(epoll_wait(own, &seen, 1, -1) == 1 && seen.data.u32 == 9, "epoll_wait");
    expect(early.read() == 1, "woken in epoll_wait");
  });
  child.await_asleep();
  expect(other.try_wake({0}) == 0, "wake");
  child.expect_done();
  close(set);
}

/// Signals and wakes in one moment: no wake is lost, and only without SA_RESTART does a read end.
void signals_interrupt() {
  constexpr int rounds = 300;
  struct sigaction action {};
  action.sa_handler = [](int) {};
  for (const int flags : {0, SA_RESTART}) {
    const File file = joined(1, 0);
    action.sa_flags = flags;
    expect(sigaction(SIGUSR1, &action, nullptr) == 0, "sigaction");
    const Child child = in_child([&] {
      if (flags == 0) expect(file.try_read() == -EINTR, "a signal ends the sleep");
      for (std::int64_t sum = 0; sum < rounds;) {
        const std::int64_t wakes = file.try_read();
        expect(wakes > 0 || (flags == 0 && wakes == -EINTR), "read");
        if (wakes > 0) sum += wakes;
      }
    });
    child.await_asleep();
    const long sleeps = child.voluntary_switches();
    kill(child.pid(), SIGUSR1);
    do child.await_asleep();
    while (child.voluntary_switches() == sleeps);
    for (int round = 0; round < rounds; ++round) {
      if (round % 3 != 0) kill(child.pid(), SIGUSR1);
      expect(file.try_wake({0}) == 0, "wake");
      if (round % 3 == 0) kill(child.pid(), SIGUSR1);
      if (round % 2 == 0) sched_yield();
    }
    child.expect_done();
  }
}

// --- Inheritance and death -------------------------------------------------------------

/// A child that has ended; it still has to be waited for.
pid_t waitid_any() {
  siginfo_t info{};
  expect(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT) == 0, "waitid");
  return info.si_pid;
}

void inherited_files() {
  File file = joined(1, 0);
  const int copy = dup(file.fd());
  // The child sleeps on the same open file; the parent writes through it meanwhile.
  const Child sleeper = in_child([&] { expect(file.read() == 1, "woken"); });
  sleeper.await_asleep();
  expect(file.try_wake({0}) == 0, "a write beside a read that sleeps");
  sleeper.expect_done();
  // Of several processes that sleep on it, one wakes, and the others are left alone.
  std::vector<Child> crowd;
  for (int i = 0; i < 4; ++i) crowd.push_back(in_child([&] { expect(file.read() == 1, "one"); }));
  for (const Child& each : crowd) each.await_asleep();
  for (std::size_t left = crowd.size(); left > 0; --left) {
    std::vector<long> before;
    for (const Child& each : crowd) before.push_back(each.voluntary_switches());
    expect(file.try_wake({0}) == 0, "wake one of several");
    const pid_t ended = waitid_any();
    std::size_t i = 0;
    while (i < crowd.size() && crowd[i].pid() != ended) ++i;
    expect(i < crowd.size(), "which process has ended");
    crowd[i].expect_done();
    crowd.erase(crowd.begin() + static_cast<std::ptrdiff_t>(i));
    before.erase(before.begin() + static_cast<std::ptrdiff_t>(i));
    for (i = 0; i < crowd.size(); ++i) {
      expect(crowd[i].voluntary_switches() == before[i], "a process woke in vain");
    }
  }
  // Closed by the parent, the child keeps the rank.
  int end[2];
  expect(pipe(end) == 0, "pipe");
  const Child holder = in_child([&] {
    close(end[1]);
    char byte = 0;
    expect(::read(end[0], &byte, 1) == 0, "the end");
  });
  file = File();
  expect(file.try_join(1, 0) == -EEXIST, "a copy and a child keep the rank");
  close(copy);
  expect(file.try_join(1, 0) == -EEXIST, "a child keeps the rank");
  close(end[1]);
  holder.expect_done();
  expect(file.try_join(1, 0) == 0, "freed with its last holder");
  close(end[0]);

  // Sent over a socket to another user, it is its opener's still.
  const Child stranger = in_child([&] {
    expect(setuid(1000) == 0, "setuid");
    expect(file.try_wake({0}) == 0, "wake through a file that was handed over");
    expect(observing(1).try_wake({0}) == -ESRCH, "wake another user's");
  });
  stranger.expect_done();
  expect(file.read() == 1, "the wake");
}

void killed_sleepers_free_their_rank() {
  struct Way {
    const char* name;
    std::function<void(const File&)> sleep;
  };
  const std::array<Way, 3> ways{
      Way{"read", [](const File& file) { (void)file.read(); }},
      Way{"poll",
          [](const File& file) {
            pollfd entry{.fd = file.fd(), .events = POLLIN, .revents = 0};
            (void)poll(&entry, 1, -1);
          }},
      Way{"threads",
          [](const File& file) {
            for (int i = 0; i < 3; ++i) std::thread([&] { (void)file.read(); }).detach();
            (void)file.read();
          }},
  };
  const File staying = observing(1);  // the job goes on
  for (int round = 0; round < 20; ++round) {
    for (const Way& way : ways) {
      Child child = in_child([&] {
        const File own = joined(1, 0);
        way.sleep(own);
      });
      child.await_asleep();
      child.kill_and_wait();
      expect(File().try_join(1, 0) == 0, std::string("rank of a killed process: ") + way.name);
      expect(staying.try_wake({0}) == -ESRCH, "a killed process is still there");
    }
  }
}

void fdinfo_shows() {
  const File file = joined(42, 3);
  expect(file.try_wake({3}) == 0, "wake");
  std::ifstream in("/proc/self/fdinfo/" + std::to_string(file.fd()));
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  for (const char* line :
       {"ompi_wake-job:\t42\n", "ompi_wake-rank:\t3\n", "ompi_wake-count:\t1\n"}) {
    expect(text.find(line) != std::string::npos, "fdinfo:\n" + text);
  }
}

// --- The class that the components use ---------------------------------------------------

overlap::KernelWakeAbsence absence(const overlap::KernelWake::Opened& opened) {
  const auto* unavailable = std::get_if<overlap::KernelWakeUnavailable>(&opened);
  if (unavailable == nullptr) fail("available");
  std::printf("%s (%s)\n", describe(unavailable->why), strerror(unavailable->error_number));
  return unavailable->why;
}

void class_absent() {
  using overlap::KernelWake;
  expect(absence(KernelWake::try_open(1, 0)) == overlap::KernelWakeAbsence::no_device, "absent");
}

void class_forbidden() {
  using overlap::KernelWake;
  expect(setuid(1000) == 0, "setuid");
  expect(absence(KernelWake::try_open(1, 0)) == overlap::KernelWakeAbsence::no_permission,
         "a device for root alone");
}

void class_works() {
  using overlap::KernelWake;
  using overlap::KernelWakeAbsence;
  const auto opened = KernelWake::try_open(1, 0);
  const auto* sleeper = std::get_if<KernelWake>(&opened);
  expect(sleeper != nullptr, "try_open");
  expect(absence(KernelWake::try_open(1, 0)) == KernelWakeAbsence::rank_taken, "taken");
  expect(absence(KernelWake::try_open(1, 1U << 31)) == KernelWakeAbsence::limit, "limit");
  expect(
      absence(KernelWake::try_open(OMPI_WAKE_DEVICE, 1, 1, 8)) == KernelWakeAbsence::other_version,
      "a flag of a later version");
  {
    const rlimit few{3, 3};
    rlimit before{};
    getrlimit(RLIMIT_NOFILE, &before);
    setrlimit(RLIMIT_NOFILE, &few);
    expect(absence(KernelWake::try_open(1, 1)) == KernelWakeAbsence::limit, "descriptors");
    setrlimit(RLIMIT_NOFILE, &before);
  }
  expect((fcntl(sleeper->fd(), F_GETFD) & FD_CLOEXEC) != 0, "kept by programs that it runs");
  expect(sleeper->drain() == 0, "drain nothing");
  const Child daemon = in_child([&] {
    const auto observing = KernelWake::try_open_observer(1);
    const auto& observer = std::get<KernelWake>(observing);
    expect(observer.wake(0) == KernelWake::Woken::done, "wake");
    expect(observer.wake(0) == KernelWake::Woken::done, "wake");
    expect(observer.wake(1) == KernelWake::Woken::nobody, "wake nobody");
    expect(observer.drain() == 0, "an observer drains nothing");
  });
  daemon.expect_done();
  pollfd entry{.fd = sleeper->fd(), .events = POLLIN, .revents = 0};
  expect(poll(&entry, 1, -1) == 1, "poll");
  expect(sleeper->drain() == 2 && sleeper->drain() == 0, "drain");
}

}  // namespace

const std::vector<Scenario> basics{
    {"one", [](int) { wakes_exactly_one(); }},
    {"early", [](int) { early_wakes_are_kept(); }},
    {"nonblocking", [](int) { nonblocking_and_back(); }},
    {"poll", [](int) { polls(); }},
    {"signals", [](int) { signals_interrupt(); }},
    {"inherited", [](int) { inherited_files(); }},
    {"killed", [](int) { killed_sleepers_free_their_rank(); }},
    {"fdinfo", [](int) { fdinfo_shows(); }},
    {"class", [](int) { class_works(); }},
    {"absent", [](int) { class_absent(); }},
    {"forbidden", [](int) { class_forbidden(); }},
};

}  // namespace wake_check
