// The module ompi_wake under load: stress, tokens, ranks that come and go, random calls; and times.
// SPDX-License-Identifier: BSD-3-Clause
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <thread>

#include "test/vm/wake_check.hpp"

namespace wake_check {
namespace {

// --- Many at once ----------------------------------------------------------------------

/// Each rank one process: a thread that sleeps and two that wake random ranks. What was written and
/// what was read must be the same, rank by rank.
void stress(int rounds) {
  constexpr std::uint32_t ranks = 12;
  struct Shared {
    std::array<std::atomic<std::uint64_t>, ranks> written;
    std::array<std::atomic<std::uint64_t>, ranks> read;
    std::atomic<unsigned> present;
  };
  auto* shared = shared_memory<Shared>();
  std::vector<Child> children;
  const File observer = observing(1);
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    children.push_back(in_child([&] {
      const File file = joined(1, rank);
      ++shared->present;
      while (shared->present < ranks) std::this_thread::yield();
      std::vector<std::thread> writers;
      std::atomic<bool> ended = false;
      for (unsigned thread = 0; thread < 2; ++thread) {
        writers.emplace_back([&, random = Random(rank * 2 + thread + 1)]() mutable {
          for (int i = 0; i < rounds; ++i) {
            std::vector<std::uint32_t> batch(1 + random.below(3));
            for (std::uint32_t& each : batch) each = random.below(ranks);
            for (const std::uint32_t each : batch) ++shared->written[each];
            expect(file.try_wake(batch) == 0, "wake");
          }
        });
      }
      std::thread reader([&] {
        while (!ended) shared->read[rank] += file.read();
      });
      for (std::thread& writer : writers) writer.join();
      ++shared->present;
      while (shared->present < 2 * ranks) std::this_thread::yield();
      ended = true;
      ++shared->written[rank];
      expect(file.try_wake({rank}) == 0, "the last wake");
      reader.join();
      file.set_nonblocking(true);
      const std::int64_t left = file.try_read();
      if (left > 0) shared->read[rank] += static_cast<std::uint64_t>(left);
    }));
  }
  for (const Child& child : children) child.expect_done();
  std::uint64_t total = 0;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    expect(shared->written[rank] == shared->read[rank], "wakes were lost or made up");
    total += shared->read[rank];
  }
  std::printf("%llu wakes\n", static_cast<unsigned long long>(total));
}

/// One rank is woken without pause and reads without pause: each read takes the whole count.
void hammer(int rounds) {
  const File file = joined(1, 0);
  file.set_nonblocking(true);
  const std::vector<std::uint32_t> batch(64, 0);
  auto* ended = shared_memory<std::atomic<bool>>();
  const Child waker = in_child([&] {
    for (int i = 0; i < rounds; ++i) expect(file.try_wake(batch) == 0, "wake");
    *ended = true;
  });
  std::uint64_t sum = 0;
  for (bool last = false; !last;) {
    last = *ended;
    const std::int64_t wakes = file.try_read();
    expect(wakes > 0 || wakes == -EAGAIN, "read");
    if (wakes > 0) sum += static_cast<std::uint64_t>(wakes);
  }
  waker.expect_done();
  expect(sum == batch.size() * static_cast<std::uint64_t>(rounds), "wakes were lost or made up");
}

/// A token goes round: a wake that is lost ends it. Half of the ranks sleep in epoll.
void ring(int turns) {
  constexpr std::uint32_t ranks = 8;
  std::vector<File> files;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) files.push_back(joined(1, rank));
  std::vector<Child> children;
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    children.push_back(in_child([&] {
      const File& file = files[rank];
      pollfd entry{.fd = file.fd(), .events = POLLIN, .revents = 0};
      for (int turn = 0; turn < turns; ++turn) {
        if (rank % 2 == 1) expect(poll(&entry, 1, -1) == 1, "poll");
        expect(file.read() == 1, "one token");
        expect(file.try_wake({(rank + 1) % ranks}) == 0, "wake the next");
      }
    }));
  }
  expect(files[0].try_wake({0}) == 0, "start");
  for (const Child& child : children) child.expect_done();
  expect(files[0].read() == 1, "the token at the end");
}

/// Several threads sleep on one file: each wake is read once, nobody sleeps for ever.
void shared_file(int rounds) {
  const File file = joined(1, 0);
  std::atomic<std::uint64_t> read = 0;
  std::vector<std::thread> readers;
  constexpr std::uint64_t end = 1'000'000'000;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (read < end) {
        const std::uint64_t wakes = file.read();
        read += wakes;
        if (read >= end) (void)file.try_wake({0});  // the next one may end, too
      }
    });
  }
  for (int i = 0; i < rounds; ++i) {
    expect(file.try_wake({0}) == 0, "wake");
    while (read < static_cast<std::uint64_t>(i) + 1) std::this_thread::yield();
    expect(read == static_cast<std::uint64_t>(i) + 1, "a wake counted twice");
  }
  read = end;
  expect(file.try_wake({0}) == 0, "wake");
  for (std::thread& reader : readers) reader.join();
}

/// Ranks come and go while others wake them; also what the unloading test runs against.
void churn(int seconds) {
  std::vector<Child> children;
  const Deadline deadline(seconds);
  for (unsigned process = 0; process < 4; ++process) {
    children.push_back(in_child([&] {
      Random random(process + 1);
      while (!deadline.passed()) {
        const File file;
        const int status = file.try_join(random.below(3), random.below(4));
        expect(status == 0 || status == -EEXIST, "join");
        if (status != 0) continue;
        file.set_nonblocking(true);
        for (int i = 0; i < 20; ++i) {
          const int woken = file.try_wake({random.below(4)});
          expect(woken == 0 || woken == -ESRCH, "wake");
          const std::int64_t wakes = file.try_read();
          expect(wakes > 0 || wakes == -EAGAIN, "read");
        }
      }
    }));
  }
  for (const Child& child : children) child.expect_done();
}

[[noreturn]] void hold() {
  const File file = joined(99, 0);
  (void)file.read();
  fail("woken");
}

/// Random calls by random users from processes that fork, share and die. Whatever they return is a
/// result that the man page names; the guest's job looks at the kernel's log afterwards.
class Fuzzer {
 public:
  explicit Fuzzer(std::uint64_t seed) : random_(seed), seed_(seed) {}

  void run(const Deadline& deadline) {
    while (!deadline.passed()) {
      ++calls_;
      step();
    }
    for (const int fd : files_) close(fd);
  }
  [[nodiscard]] std::uint64_t calls() const { return calls_; }

 private:
  void allow(std::int64_t returned, const char* call, std::initializer_list<int> errors) {
    if (returned >= 0) return;
    for (const int error : errors) {
      if (returned == -error) return;
    }
    fail("seed " + std::to_string(seed_) + ": " + call + " returned " + std::to_string(returned));
  }
  int any_file() { return files_.empty() ? -1 : files_[random_.below(files_.size())]; }
  /// Mostly good, sometimes on the edge of a hole, in the kernel or nowhere.
  void* any_address() {
    switch (random_.below(8)) {
      case 0: return nullptr;
      case 1: return reinterpret_cast<void*>(random_.next());
      case 2: return pages_.before_the_hole(random_.below(64));
      default: return memory_.data() + random_.below(64);
    }
  }
  std::size_t any_size() {
    constexpr std::size_t edges[] = {0, 1, 4, 7, 8, 24, 4096, std::size_t{1} << 40};
    return random_.below(4) == 0 ? edges[random_.below(8)] : 4 * (1 + random_.below(8));
  }
  void open_one() {
    if (files_.size() >= 24) return;
    constexpr unsigned users[] = {0, 1000, 1001};
    expect(seteuid(users[random_.below(3)]) == 0, "seteuid");
    constexpr int modes[] = {O_RDWR, O_RDWR, O_RDONLY, O_WRONLY};
    const int fd = open(OMPI_WAKE_DEVICE, O_NONBLOCK | O_CLOEXEC | modes[random_.below(4)]);
    expect(fd >= 0 && seteuid(0) == 0, "open");
    files_.push_back(fd);
  }
  void join() {
    ompi_wake_join join = joining(random_.below(3), random_.below(6));
    if (random_.below(6) == 0) join.flags = random_.below(3);
    if (random_.below(6) == 0) join.rank = static_cast<std::uint32_t>(random_.next());
    if (random_.below(8) == 0) join.version = random_.below(3);
    if (random_.below(8) == 0) join.bytes = random_.below(64);
    void* argument = random_.below(4) == 0 ? any_address() : &join;
    unsigned long request = OMPI_WAKE_JOIN;
    if (random_.below(8) == 0) request ^= 1UL << random_.below(34);
    allow(result(ioctl(any_file(), request, argument)), "ioctl",
          {EBADF, EFAULT, EPROTO, EINVAL, ERANGE, EBUSY, EEXIST, EDQUOT, ENOTTY, EINTR});
  }
  void fork_one() {
    const pid_t pid = fork();
    expect(pid >= 0, "fork");
    if (pid == 0) {
      for (int i = 0; i < 5; ++i) use_one();
      if (random_.below(2) == 0) kill(getpid(), SIGKILL);
      _exit(0);
    }
    if (random_.below(2) == 0) kill(pid, SIGKILL);
    use_one();
    waitpid(pid, nullptr, 0);
  }
  void use_one() {
    const int fd = any_file();
    switch (random_.below(8)) {
      case 0:
      case 1:
        allow(result(read(fd, any_address(), any_size())), "read",
              {EBADF, EFAULT, EAGAIN, EINVAL, ENOTCONN});
        break;
      case 2:
      case 3:
      case 4: {
        for (std::uint32_t& each : memory_) each = random_.below(7);
        allow(result(write(fd, any_address(), any_size())), "write",
              {EBADF, EFAULT, EINVAL, ENOTCONN, ESRCH});
        break;
      }
      case 5: {
        pollfd entries[] = {{fd, POLLIN, 0}, {any_file(), POLLIN | POLLOUT, 0}};
        allow(result(poll(entries, 2, 0)), "poll", {});
        break;
      }
      case 6: {
        epoll_event event{.events = EPOLLIN | (random_.below(2) ? EPOLLET + 0U : 0U), .data = {}};
        const int operation = 1 + static_cast<int>(random_.below(3));
        allow(result(epoll_ctl(set_, operation, fd, &event)), "epoll_ctl", {EBADF, EEXIST, ENOENT});
        allow(result(epoll_wait(set_, &event, 1, 0)), "epoll_wait", {});
        break;
      }
      default: {
        char text[512];
        const int info = open(("/proc/self/fdinfo/" + std::to_string(fd)).c_str(), O_RDONLY);
        if (info >= 0) allow(result(read(info, text, sizeof text)), "fdinfo", {});
        if (info >= 0) close(info);
        break;
      }
    }
  }
  void step() {
    switch (random_.below(16)) {
      case 0:
      case 1: return open_one();
      case 2:
      case 3: return join();
      case 4:
        if (!files_.empty()) {
          const auto at = files_.begin() + random_.below(files_.size());
          close(*at);
          files_.erase(at);
        }
        return;
      case 5:
        if (!files_.empty() && files_.size() < 24) files_.push_back(dup(any_file()));
        return;
      case 6:
        if (random_.below(8) == 0) fork_one();
        return;
      default: return use_one();
    }
  }

  Random random_;
  std::uint64_t seed_;
  std::uint64_t calls_ = 0;
  std::vector<int> files_;
  std::array<std::uint32_t, 2048> memory_{};
  Pages pages_;
  int set_ = epoll_create1(EPOLL_CLOEXEC);
};

void fuzz(int seconds) {
  std::vector<Child> children;
  auto* calls = shared_memory<std::atomic<std::uint64_t>>();
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    children.push_back(in_child([&] {
      Fuzzer fuzzer(seed);
      fuzzer.run(Deadline(seconds));
      *calls += fuzzer.calls();
    }));
  }
  for (const Child& child : children) child.expect_done();
  std::printf("%llu calls\n", static_cast<unsigned long long>(*calls));
}

// --- Times, for information ------------------------------------------------------------

/// Two processes that sleep for each other; adds half of each round trip.
template <class Wait, class Wake>
void add_half_round_trips(std::vector<double>& times_us, int rounds, Wait wait, Wake wake) {
  const Child other = in_child([&] {
    for (int i = 0; i < rounds; ++i) {
      wait(1);
      wake(0);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    wake(1);
    wait(0);
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
    times_us.push_back(time.count() / 2);
  }
  other.expect_done();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Expected: the module like an eventfd, as it does the same with one look-up more.
void latency(int rounds) {
  int pipes[2][2];
  int events[2];
  for (int i = 0; i < 2; ++i) {
    events[i] = eventfd(0, 0);
    expect(pipe(pipes[i]) == 0 && events[i] >= 0, "files");
  }
  const std::array<File, 2> files{joined(1, 0), joined(1, 1)};
  const auto good = [](ssize_t bytes) { expect(bytes > 0, "latency"); };
  char byte = 0;
  std::uint64_t count = 1;
  std::vector<double> by_pipe;
  std::vector<double> by_eventfd;
  std::vector<double> by_module;
  constexpr int turns = 10;
  for (int turn = 0; turn < turns; ++turn) {
    add_half_round_trips(
        by_pipe, rounds / turns, [&](unsigned who) { good(read(pipes[who][0], &byte, 1)); },
        [&](unsigned who) { good(write(pipes[who][1], &byte, 1)); });
    add_half_round_trips(
        by_eventfd, rounds / turns, [&](unsigned who) { good(read(events[who], &count, 8)); },
        [&](unsigned who) {
          count = 1;
          good(write(events[who], &count, 8));
        });
    add_half_round_trips(
        by_module, rounds / turns, [&](unsigned who) { good(read(files[who].fd(), &count, 8)); },
        [&](unsigned who) { good(write(files[1 - who].fd(), &who, 4)); });
  }
  std::printf(
      "  figure: wake of a sleeping process, median of %d: pipe %.1f us, eventfd %.1f us, "
      "ompi_wake %.1f us\n",
      rounds, median(by_pipe), median(by_eventfd), median(by_module));
}

}  // namespace

const std::vector<Scenario> loads{
    {"stress", stress, 2000},      {"hammer", hammer, 10000},   {"ring", ring, 300},
    {"shared", shared_file, 1000}, {"churn", churn, 3},         {"fuzz", fuzz, 6},
    {"hold", [](int) { hold(); }}, {"latency", latency, 10000},
};

}  // namespace wake_check
