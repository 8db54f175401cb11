// The progress lock on the real machine: rules of use, and mutual exclusion under stress.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/progress_lock.hpp"
#include "test/support/catch.hpp"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <latch>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <string>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using overlap::Guard;
using overlap::ProgressLock;
using Mode = ProgressLock::Mode;

/// Two plain counters that only agree when nobody is inside twice; ThreadSanitizer watches them as
/// well.
struct Protected {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool torn = false;

  void visit() noexcept {
    const std::uint64_t seen = first++;
    torn |= seen != second;
    asm volatile("" ::: "memory");
    ++second;
  }
};

/// Grade of the stress tests: 1 by default, OVERLAP_STRESS multiplies the counts.
std::uint64_t grade() {
  const char* text = std::getenv("OVERLAP_STRESS");
  const long value = text ? std::strtol(text, nullptr, 10) : 1;
  return value > 0 ? static_cast<std::uint64_t>(value) : 1;
}

/// Run one try in another thread.
bool try_elsewhere(ProgressLock& lock) {
  bool entered = false;
  std::thread([&] {
    entered = lock.try_lock();
    if (entered) lock.unlock();
  }).join();
  return entered;
}

/// How a process ended that misused a lock.
struct Death {
  bool aborted = false;
  std::string said;
};

template <class Misuse>
Death death_of(Misuse&& misuse) {
  int ends[2];
  if (pipe(ends) != 0) return {};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::signal(SIGABRT, SIG_DFL);  // not the test runner's report
    alarm(60);                      // a misuse that nobody notices may wait for itself
    misuse();
    _exit(0);
  }
  close(ends[1]);
  Death death;
  char piece[256];
  for (ssize_t bytes = 0; (bytes = read(ends[0], piece, sizeof piece)) > 0;)
    death.said.append(piece, static_cast<std::size_t>(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  death.aborted = WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
  return death;
}

/// Let the kernel refuse one command of membarrier to this process, as containers do.
bool refuse_membarrier(int command) {
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[0])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<__u32>(command), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {std::size(code), code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

TEST_CASE("a lock that was never started is shared", "[progress_lock]") {
  ProgressLock lock;
  CHECK(lock.mode() == Mode::shared);
  lock.lock();
  CHECK_FALSE(try_elsewhere(lock));
  lock.unlock();
  CHECK(try_elsewhere(lock));
}

TEST_CASE("one thread is inside at a time and knows it", "[progress_lock]") {
  const Mode mode = GENERATE(Mode::biased, Mode::shared);
  ProgressLock lock;
  lock.start(mode);
  REQUIRE(lock.mode() == mode);
  CHECK_FALSE(lock.held_by_me_hint());

  lock.lock();
  CHECK(lock.held_by_me_hint());
  CHECK_FALSE(try_elsewhere(lock));
  lock.unlock();
  CHECK_FALSE(lock.held_by_me_hint());

  REQUIRE(lock.try_lock());
  CHECK(lock.held_by_me_hint());
  CHECK_FALSE(try_elsewhere(lock));
  lock.unlock();

  CHECK(try_elsewhere(lock));
  {
    const Guard guard(lock);
    CHECK(lock.held_by_me_hint());
  }
  CHECK(try_elsewhere(lock));
}

TEST_CASE("entering twice ends the process: the inner exit would release the outer entry",
          "[progress_lock]") {
  const Mode mode = GENERATE(Mode::biased, Mode::shared);
  const bool tries = GENERATE(false, true);
  CAPTURE(mode == Mode::biased, tries);
  const Death death = death_of([&] {
    ProgressLock lock;
    lock.start(mode);
    lock.lock();
    if (tries)
      static_cast<void>(lock.try_lock());
    else
      lock.lock();
  });
  CHECK(death.aborted);
  CHECK(death.said == "overlap: progress lock: entered twice by one thread\n");
}

// Hidden: it needs a process in which nobody has been a guest.
TEST_CASE("only guests register the process", "[.progress_lock_alone]") {
  const auto is_registered = [] {
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
  };
  ProgressLock shared;
  shared.start(Mode::shared);
  CHECK(try_elsewhere(shared));
  ProgressLock lock;
  lock.start(Mode::biased);
  lock.lock();
  lock.unlock();
  CHECK_FALSE(is_registered());
  CHECK(try_elsewhere(lock));
  CHECK(is_registered());
}

TEST_CASE("starting a lock does not wait for the kernel", "[progress_lock]") {
  if (overlap::LinuxPlatform::tsan) return;  // it has no membarriers
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "alone", "[.progress_lock_alone]", nullptr);
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
}

TEST_CASE("where a filter refuses membarriers the lock is shared", "[progress_lock]") {
  if (overlap::LinuxPlatform::tsan) return;  // it has none
  const int command = GENERATE(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED,
                               MEMBARRIER_CMD_PRIVATE_EXPEDITED, MEMBARRIER_CMD_QUERY);
  const pid_t child = fork();
  if (child == 0) {
    if (!refuse_membarrier(command)) _exit(77);
    ProgressLock lock;
    lock.start(Mode::biased);
    _exit(lock.mode() == Mode::shared ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) WARN("not tested: this process may install no seccomp filter");
  CHECK((WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77));
}

TEST_CASE("the owner is refused while a guest is inside", "[progress_lock]") {
  ProgressLock lock;
  lock.start(Mode::biased);
  std::atomic<bool> inside{false};
  std::atomic<bool> leave{false};
  bool guest_knew = false;
  std::thread guest([&] {
    lock.lock();
    inside.store(true);
    while (!leave.load()) std::this_thread::yield();
    guest_knew = lock.held_by_me_hint();
    lock.unlock();
  });
  while (!inside.load()) std::this_thread::yield();
  CHECK_FALSE(lock.try_lock());
  CHECK_FALSE(lock.held_by_me_hint());
  leave.store(true);
  lock.lock();  // sleeps until the guest has left
  CHECK(lock.held_by_me_hint());
  lock.unlock();
  guest.join();
  CHECK(guest_knew);
}

TEST_CASE("the state word can live elsewhere and tells when an MPI thread is inside",
          "[progress_lock]") {
  const Mode mode = GENERATE(Mode::biased, Mode::shared);
  ProgressLock::Word word{7};
  ProgressLock lock;
  lock.place_state(&word);
  CHECK(word.load() == 0);
  lock.start(mode);
  lock.lock();
  CHECK(word.load() != 0);
  lock.unlock();
  CHECK(word.load() == 0);
  lock.place_state(nullptr);
  lock.lock();
  CHECK(word.load() == 0);
  lock.unlock();
}

TEST_CASE("a lock changes mode between uses", "[progress_lock]") {
  ProgressLock lock;
  for (const Mode mode : {Mode::biased, Mode::shared, Mode::biased}) {
    lock.start(mode);
    REQUIRE(lock.mode() == mode);
    CHECK(try_elsewhere(lock));
    const Guard guard(lock);
    CHECK_FALSE(try_elsewhere(lock));
  }
}

TEST_CASE("stress: a busy owner and guests that try", "[progress_lock][stress]") {
  const unsigned guests = GENERATE(1U, 2U, 3U);
  const std::uint64_t owner_rounds =
      (overlap::LinuxPlatform::tsan ? 3'000'000 : 30'000'000) * grade();
  const std::uint64_t guest_rounds = 20'000 * grade();
  ProgressLock lock;
  lock.start(Mode::biased);
  Protected shared;
  std::latch start(guests + 1);
  std::vector<std::thread> threads;
  for (unsigned g = 0; g < guests; ++g)
    threads.emplace_back([&] {
      start.arrive_and_wait();
      for (std::uint64_t entered = 0, refused = 0; entered < guest_rounds;) {
        if (lock.try_lock()) {
          shared.visit();
          lock.unlock();
          ++entered;
        } else if (++refused % 64 == 0) {
          std::this_thread::yield();  // somebody inside may wait for this core
        }
      }
    });
  start.arrive_and_wait();
  for (std::uint64_t i = 0; i < owner_rounds; ++i) {
    const Guard guard(lock);
    shared.visit();
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(shared.torn);
  CHECK(shared.first == owner_rounds + guests * guest_rounds);
  CHECK(shared.second == shared.first);
}

TEST_CASE("stress: threads that wait", "[progress_lock][stress]") {
  const Mode mode = GENERATE(Mode::biased, Mode::shared);
  const std::uint64_t rounds = 10'000 * grade();
  constexpr unsigned others = 3;
  ProgressLock lock;
  lock.start(mode);
  Protected shared;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < others; ++t)
    threads.emplace_back([&] {
      for (std::uint64_t i = 0; i < rounds; ++i) {
        const Guard guard(lock);
        shared.visit();
      }
    });
  for (std::uint64_t i = 0; i < 10 * rounds; ++i) {
    const Guard guard(lock);
    shared.visit();
  }
  for (auto& thread : threads) thread.join();
  CHECK_FALSE(shared.torn);
  CHECK(shared.first == (10 + others) * rounds);
  CHECK(shared.second == shared.first);
}
