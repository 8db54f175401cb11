// Who reaches whom through the module ompi_wake, who may join, what is refused and changes nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include <sched.h>
#include <termios.h>

#include <array>
#include <atomic>
#include <thread>

#include "test/vm/wake_check.hpp"

namespace wake_check {
namespace {

// --- Who reaches whom ------------------------------------------------------------------

void spaces_are_apart() {
  constexpr std::array<unsigned, 3> users{0, 1000, 1001};
  constexpr std::array<std::uint64_t, 2> jobs{7, 0xffffffff00000007};
  struct Place {
    unsigned user;
    std::uint64_t job;
    File file;
    File observer;
  };
  std::vector<Place> places;
  for (const unsigned user : users) {
    for (const std::uint64_t job : jobs) {
      expect(seteuid(0) == 0 && seteuid(user) == 0, "seteuid");
      places.push_back({user, job, joined(job, 0), observing(job)});
    }
  }
  expect(seteuid(0) == 0, "seteuid back");  // the opener's user counts, not the caller's
  for (const Place& place : places) place.file.set_nonblocking(true);
  for (const Place& waker : places) {
    expect(waker.observer.try_wake({0}) == 0, "wake");
    for (const Place& place : places) {
      const std::int64_t expected = &place == &waker ? 1 : -EAGAIN;
      expect(place.file.try_read() == expected, "a wake in another space");
    }
    expect(waker.observer.try_wake({1}) == -ESRCH, "a rank that nobody has");
  }
  // A file that its opener hands over joins among the opener's.
  expect(seteuid(1001) == 0, "seteuid");
  const File handed;
  expect(seteuid(0) == 0, "seteuid back");
  expect(handed.try_join(jobs[0], 0) == -EEXIST && handed.try_join(jobs[0], 1) == 0, "join");
  for (const Place& place : places) {
    const bool own = place.user == 1001 && place.job == jobs[0];
    expect(place.observer.try_wake({1}) == (own ? 0 : -ESRCH), "the caller's user counts");
  }
  // A user of a container is the user that it stands for outside.
  const Child child = in_child([&] {
    expect(setuid(1000) == 0 && prctl(PR_SET_DUMPABLE, 1) == 0, "setuid");
    expect(unshare(CLONE_NEWUSER) == 0, "unshare");
    std::ofstream("/proc/self/uid_map") << "0 1000 1";
    expect(geteuid() == 0, "not root in the container");
    expect(File().try_join(jobs[0], 0) == -EEXIST, "another space for the same user");
    expect(observing(jobs[0]).try_wake({0}) == 0, "wake from a container");
  });
  child.expect_done();
  for (const Place& place : places) {
    const bool own = place.user == 1000 && place.job == jobs[0];
    expect(place.file.try_read() == (own ? 1 : -EAGAIN), "a container's wake");
  }
}

void ranks_are_taken_once() {
  const File staying = observing(1);  // the job goes on while its ranks come and go
  File file = joined(1, 5);
  expect(file.try_join(1, 6) == -EBUSY, "a second join");
  expect(File().try_join(1, 5) == -EEXIST, "a rank that is taken");
  const File fresh;
  expect(fresh.try_join(1, 5) == -EEXIST, "a rank that is taken");
  file = File();
  expect(fresh.try_join(1, 5) == 0, "a failed join can be repeated");
  std::vector<File> observers;
  for (int i = 0; i < 3; ++i) observers.push_back(observing(1));
  // Many at once: one gets it.
  for (int round = 0; round < 200; ++round) {
    std::array<File, 4> files;
    std::atomic<int> joined_count = 0;
    std::atomic<bool> go = false;
    std::vector<std::thread> threads;
    for (File& each : files) {
      threads.emplace_back([&] {
        while (!go) std::this_thread::yield();
        const int status = each.try_join(2, 0);
        if (status == 0) ++joined_count;
        expect(status == 0 || status == -EEXIST, "a race of joins");
      });
    }
    go = true;
    for (std::thread& thread : threads) thread.join();
    expect(joined_count == 1, "one rank for several");
  }
}

void wrong_arguments() {
  const File file;
  std::uint64_t count = 0;
  std::uint32_t rank = 0;
  expect(file.try_read() == -ENOTCONN && file.try_wake({0}) == -ENOTCONN, "not joined");
  ompi_wake_join join = joining(1, 0);
  join.version = 2;
  expect(file.try_ioctl(OMPI_WAKE_JOIN, &join) == -EPROTO, "a later version");
  join.version = 0;
  expect(file.try_ioctl(OMPI_WAKE_JOIN, &join) == -EPROTO, "no version");
  join = joining(1, 0);
  join.bytes = sizeof join + 8;
  expect(file.try_ioctl(OMPI_WAKE_JOIN, &join) == -EINVAL, "another size");
  join = joining(1, 0);
  const auto of_size = [](unsigned bytes) {
    return _IOC(_IOC_WRITE, _IOC_TYPE(OMPI_WAKE_JOIN), _IOC_NR(OMPI_WAKE_JOIN), bytes);
  };
  expect(file.try_ioctl(of_size(32), &join) == -EINVAL, "a longer structure");
  expect(file.try_ioctl(of_size(16), &join) == -EINVAL, "a shorter structure");
  expect(file.try_ioctl(of_size(4), &join) == -EINVAL, "no structure");
  join.version = 9;
  expect(file.try_ioctl(of_size(64), &join) == -EPROTO, "a longer one of a later version");
  join = joining(1, 0);
  join.flags = 2;
  expect(file.try_ioctl(OMPI_WAKE_JOIN, &join) == -EINVAL, "a flag that does not exist");
  join = joining(1, 7);
  join.flags = OMPI_WAKE_OBSERVER;
  expect(file.try_ioctl(OMPI_WAKE_JOIN, &join) == -ERANGE, "an observer with a rank");
  for (const std::uint32_t out : {4096U, 0x80000000U, 0xffffffffU}) {
    expect(file.try_join(1, out) == -ERANGE, "a rank that is too large");
  }
  expect(file.try_ioctl(OMPI_WAKE_JOIN + 1, &join) == -ENOTTY, "another request");
  expect(file.try_ioctl(TCGETS, &join) == -ENOTTY, "a terminal's request");
  expect(file.try_ioctl(OMPI_WAKE_JOIN, nullptr) == -EFAULT, "no pointer");
  expect(file.try_ioctl(OMPI_WAKE_JOIN, Pages().before_the_hole(8)) == -EPROTO, "zeros");
  {
    const Pages pages;  // the first members readable, the rest not
    join = joining(1, 0);
    std::memcpy(pages.before_the_hole(8), &join, 8);
    expect(file.try_ioctl(OMPI_WAKE_JOIN, pages.before_the_hole(8)) == -EFAULT, "half of it");
  }
  expect(file.try_join(1, 4095) == 0, "the last rank, after all that");

  const auto read = [&](void* to, std::size_t bytes) {
    return result(::read(file.fd(), to, bytes));
  };
  const auto write = [&](const void* from, std::size_t bytes) {
    return result(::write(file.fd(), from, bytes));
  };
  expect(read(&count, 7) == -EINVAL && read(&count, 0) == -EINVAL, "a short read");
  expect(observing(1).try_read() == -EINVAL, "an observer reads");
  expect(write(&rank, 3) == -EINVAL && write(&rank, 0) == 0, "odd writes");
  expect(pread(file.fd(), &count, 8, 0) == -1 && errno == ESPIPE, "pread");
  expect(pwrite(file.fd(), &rank, 4, 0) == -1 && errno == ESPIPE, "pwrite");
  expect(lseek(file.fd(), 0, SEEK_SET) == -1 && errno == ESPIPE, "lseek");
  expect(mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file.fd(), 0) == MAP_FAILED, "mmap");
}

void bad_pointers_lose_nothing() {
  const File file = joined(1, 0);
  const File other = joined(1, 2);
  file.set_nonblocking(true);
  other.set_nonblocking(true);
  const Pages pages;
  expect(file.try_wake({0, 0, 0}) == 0, "wake");
  for (const std::size_t good : {0, 1, 4, 7}) {
    expect(result(::read(file.fd(), pages.before_the_hole(good), 8)) == -EFAULT, "read");
  }
  // For the kernel an address of its own is as bad.
  expect(result(::read(file.fd(), reinterpret_cast<void*>(~0xfffULL), 8)) == -EFAULT, "read");
  expect(file.read() == 3, "wakes were lost by a failed read");

  const auto write = [&](const void* from, std::size_t ranks) {
    return result(::write(file.fd(), from, 4 * ranks));
  };
  expect(write(pages.before_the_hole(0), 1) == -EFAULT, "write from nowhere");
  expect(write(reinterpret_cast<void*>(~0xfffULL), 4) == -EFAULT, "write from the kernel");
  std::vector<std::uint32_t> ranks(2000, 2);
  std::memcpy(pages.before_the_hole(4 * 64), ranks.data(), 4 * 64);
  expect(write(pages.before_the_hole(4 * 64), 65) == 4 * 64, "what was readable is woken");
  expect(other.read() == 64, "the count");
  expect(write(ranks.data(), 2000) == 4 * OMPI_WAKE_BATCH, "a batch at a time");
  expect(other.read() == OMPI_WAKE_BATCH, "the count");
  for (const std::size_t stranger : {1, 63, 64, 100}) {
    ranks[stranger] = 1;
    expect(write(ranks.data(), 200) == static_cast<std::int64_t>(4 * stranger),
           "ranks before one that nobody has");
    expect(other.read() == stranger, "the count");
    expect(write(&ranks[stranger], 10) == -ESRCH, "one that nobody has");
    expect(other.try_read() == -EAGAIN, "nobody after it is woken");
    ranks[stranger] = 2;
  }
}

void limits_hold() {
  const std::string folder = "/sys/module/ompi_wake/parameters/";
  const auto set = [&](const char* name, unsigned value) {
    std::ofstream out(folder + name);
    out << value << std::flush;
    expect(out.good(), "cannot set a parameter");
  };
  set("jobs_max", 3);
  std::vector<File> files;
  for (std::uint64_t job = 0; job < 3; ++job) files.push_back(joined(job, 0));
  expect(File().try_join(3, 0) == -EDQUOT, "a job too many");
  expect(File().try_join(3, 0, OMPI_WAKE_OBSERVER) == -EDQUOT, "an observer's job counts too");
  files.push_back(joined(2, 1));  // a job that is there
  expect(seteuid(1000) == 0, "seteuid");
  files.push_back(joined(3, 0));  // another user's account
  expect(seteuid(0) == 0, "seteuid back");
  files.erase(files.begin());
  files.push_back(joined(3, 0));
  set("ranks_max", 2);
  expect(File().try_join(3, 2) == -ERANGE && File().try_join(3, 1) == 0, "ranks_max");
  set("jobs_max", 64);
  set("ranks_max", 4096);
}

}  // namespace

const std::vector<Scenario> rules{
    {"spaces", [](int) { spaces_are_apart(); }},
    {"taken", [](int) { ranks_are_taken_once(); }},
    {"arguments", [](int) { wrong_arguments(); }},
    {"pointers", [](int) { bad_pointers_lose_nothing(); }},
    {"limits", [](int) { limits_hold(); }},
};

}  // namespace wake_check
