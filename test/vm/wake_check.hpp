// Files of /dev/ompi_wake, child processes and addresses for the checks of the kernel module.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "kernel/ompi_wake.h"

namespace wake_check {

[[noreturn]] inline void fail(const std::string& text) {
  std::printf("failed: %s (errno %s)\n", text.c_str(), std::strerror(errno));
  std::fflush(stdout);
  _exit(1);
}

inline void expect(bool good, const std::string& text) {
  if (!good) fail(text);
}

/// What a system call returned, or the negative errno.
inline std::int64_t result(ssize_t returned) { return returned < 0 ? -errno : returned; }

inline ompi_wake_join joining(std::uint64_t job, std::uint32_t rank) {
  return {.version = OMPI_WAKE_VERSION,
          .bytes = sizeof(ompi_wake_join),
          .job = job,
          .rank = rank,
          .flags = 0};
}

/// An open file of the device; joined or not.
class File {
 public:
  File() : fd_(::open(OMPI_WAKE_DEVICE, O_RDWR | O_CLOEXEC)) {
    expect(fd_ >= 0, "open " OMPI_WAKE_DEVICE);
  }
  File(File&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  File& operator=(File&& other) noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~File() {
    if (fd_ >= 0) ::close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }

  [[nodiscard]] int try_ioctl(unsigned long request, const void* argument) const {
    return static_cast<int>(result(::ioctl(fd_, request, argument)));
  }
  /// @returns  0 or a negative errno
  [[nodiscard]] int try_join(std::uint64_t job, std::uint32_t rank, std::uint32_t flags = 0) const {
    ompi_wake_join join = joining(job, rank);
    join.flags = flags;
    return try_ioctl(OMPI_WAKE_JOIN, &join);
  }
  /// @returns  wakes or a negative errno
  [[nodiscard]] std::int64_t try_read() const {
    std::uint64_t wakes[2] = {};
    const std::int64_t bytes = result(::read(fd_, wakes, sizeof wakes));
    if (bytes < 0) return bytes;
    expect(bytes == 8 && wakes[0] > 0 && wakes[1] == 0, "a read of no wakes");
    return static_cast<std::int64_t>(wakes[0]);
  }
  [[nodiscard]] std::uint64_t read() const {
    const std::int64_t wakes = try_read();
    expect(wakes > 0, "read");
    return static_cast<std::uint64_t>(wakes);
  }
  /// @returns  0 when all were woken, or a negative errno
  [[nodiscard]] int try_wake(const std::vector<std::uint32_t>& ranks) const {
    const auto bytes = static_cast<std::int64_t>(ranks.size() * sizeof ranks[0]);
    const std::int64_t written =
        result(::write(fd_, ranks.data(), static_cast<std::size_t>(bytes)));
    if (written < 0) return static_cast<int>(written);
    expect(written == bytes, "a short write");
    return 0;
  }
  void set_nonblocking(bool nonblocking) const {
    expect(::fcntl(fd_, F_SETFL, O_RDWR | (nonblocking ? O_NONBLOCK : 0)) == 0, "F_SETFL");
  }

 private:
  int fd_;
};

inline File joined(std::uint64_t job, std::uint32_t rank, std::uint32_t flags = 0) {
  File file;
  const int status = file.try_join(job, rank, flags);
  expect(status == 0, "join: " + std::string(std::strerror(-status)));
  return file;
}

inline File observing(std::uint64_t job) { return joined(job, 0, OMPI_WAKE_OBSERVER); }

/// A child process; killed with its owner.
class Child {
 public:
  explicit Child(pid_t pid) : pid_(pid) {}
  Child(Child&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  Child& operator=(Child&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  ~Child() {
    if (pid_ > 0) kill_and_wait();
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

  /// Until it sleeps in read, poll or epoll_wait.
  void await_asleep() const {
    for (;;) {
      const std::string call = first_of("syscall");
      for (const char* each : {"0", "7", "232", "271", "281"}) {
        if (call == each) return;
      }
      expect(!call.empty() && call != "-1", "the process has ended");
      usleep(200);
    }
  }
  /// How often it has gone to sleep.
  [[nodiscard]] long voluntary_switches() const {
    std::ifstream in(path("status"));
    std::string word;
    long count = -1;
    while (in >> word) {
      if (word == "voluntary_ctxt_switches:") in >> count;
    }
    expect(count >= 0, "no count of switches");
    return count;
  }
  void expect_done() const {
    int status = -1;
    expect(waitpid(pid_, &status, 0) == pid_, "waitpid");
    pid_ = 0;
    expect(status == 0, "a process failed, status " + std::to_string(status));
  }
  void kill_and_wait() const {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  [[nodiscard]] std::string path(const char* name) const {
    return "/proc/" + std::to_string(pid_) + "/" + name;
  }
  [[nodiscard]] std::string first_of(const char* name) const {
    std::ifstream in(path(name));
    std::string word;
    in >> word;
    return word;
  }

  mutable pid_t pid_;
};

template <class Function>
Child in_child(Function function) {
  std::fflush(stdout);
  const pid_t pid = fork();
  expect(pid >= 0, "fork");
  if (pid > 0) return Child(pid);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  function();
  std::fflush(stdout);
  _exit(0);
}

/// A readable page, and none behind it.
class Pages {
 public:
  Pages()
      : start_(static_cast<char*>(
            mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    expect(start_ != MAP_FAILED && mprotect(start_ + 4096, 4096, PROT_NONE) == 0, "mmap");
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { munmap(start_, 8192); }
  [[nodiscard]] void* before_the_hole(std::size_t bytes) const { return start_ + 4096 - bytes; }

 private:
  char* start_;
};

/// Zeroed, shared with children, kept until the process ends.
template <class T>
T* shared_memory() {
  void* memory =
      mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  expect(memory != MAP_FAILED, "mmap");
  return new (memory) T{};
}

/// Numbers that a seed repeats (splitmix64).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }

 private:
  std::uint64_t state_;
};

/// How long a load lasts.
class Deadline {
 public:
  explicit Deadline(int seconds) : end_(Clock::now() + std::chrono::seconds(seconds)) {}
  [[nodiscard]] bool passed() const { return Clock::now() >= end_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point end_;
};

struct Scenario {
  const char* name;
  std::function<void(int)> run;
  int argument = 0;  ///< unless one is given
};

/// One process or thread wakes another, step by step (wake_check_basics.cpp).
extern const std::vector<Scenario> basics;
/// Who reaches whom, who may join, what is refused (wake_check_rules.cpp).
extern const std::vector<Scenario> rules;
/// Many at once, random calls, times (wake_check_load.cpp).
extern const std::vector<Scenario> loads;

}  // namespace wake_check
