// The progress lock on Linux: membarrier and futex.
// SPDX-License-Identifier: BSD-3-Clause
#include "opal/mca/common/overlap/progress_lock_slow.hpp"

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace overlap {

namespace {

long membarrier_call(int command) noexcept { return syscall(SYS_membarrier, command, 0, 0); }

/// Does this command reach the kernel? It refuses flags that do not exist, and changes nothing; a
/// seccomp filter that refuses the command answers otherwise.
bool reaches_kernel(int command) noexcept {
  constexpr unsigned no_such_flags = ~0U;
  return syscall(SYS_membarrier, command, no_such_flags, 0) == -1 && errno == EINVAL;
}

void futex_call(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) noexcept {
  static_assert(sizeof(word) == sizeof(std::uint32_t) &&
                std::atomic<std::uint32_t>::is_always_lock_free);
  const int saved_errno = errno;  // a lock must not change what the caller sees
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
  errno = saved_errno;
}

}  // namespace

bool LinuxPlatform::offers_biased() noexcept {
  if (tsan) return true;
  constexpr long needed =
      MEMBARRIER_CMD_PRIVATE_EXPEDITED | MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED;
  const int saved_errno = errno;
  const long offered = membarrier_call(MEMBARRIER_CMD_QUERY);
  const bool usable = offered > 0 && (offered & needed) == needed &&
                      reaches_kernel(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) &&
                      reaches_kernel(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
  errno = saved_errno;
  return usable;
}

void LinuxPlatform::ready_guest() noexcept {
  // The call before the store, which who reads true relies on. Two that read false both register,
  // which does no harm.
  static std::atomic<bool> is_registered{false};
  if (tsan || is_registered.load(std::memory_order_acquire)) return;
  const int saved_errno = errno;
  membarrier_call(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);  // refused: membarrier() says so
  errno = saved_errno;
  is_registered.store(true, std::memory_order_release);
}

bool LinuxPlatform::membarrier() noexcept {
  if (tsan) return true;
  const int saved_errno = errno;
  const bool passed = membarrier_call(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0;
  errno = saved_errno;
  return passed;
}

void LinuxPlatform::pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  compiler_fence();
#endif
}

void LinuxPlatform::wait(std::atomic<std::uint32_t>& word, std::uint32_t expected) noexcept {
  futex_call(word, FUTEX_WAIT, expected);
}

void LinuxPlatform::wake_one(std::atomic<std::uint32_t>& word) noexcept {
  futex_call(word, FUTEX_WAKE, 1);
}

void LinuxPlatform::wake_all(std::atomic<std::uint32_t>& word) noexcept {
  futex_call(word, FUTEX_WAKE, INT_MAX);
}

void LinuxPlatform::await_zero(const std::atomic<std::uint32_t>& word) noexcept {
  constexpr unsigned yield_count = 20;
  constexpr long nap_max_ns = 200'000;
  long nap_ns = 10'000;
  for (unsigned look = 0; word.load(std::memory_order_seq_cst) != 0; ++look) {
    if (look < spin_count) {
      pause();
    } else if (look < spin_count + yield_count) {
      sched_yield();
    } else {
      const int saved_errno = errno;
      const timespec nap{0, nap_ns};
      nanosleep(&nap, nullptr);
      errno = saved_errno;
      nap_ns = nap_ns * 2 < nap_max_ns ? nap_ns * 2 : nap_max_ns;
    }
  }
}

void LinuxPlatform::fail(const char* sentence) noexcept {
  std::fprintf(stderr, "overlap: progress lock: %s\n", sentence);
  std::abort();
}

template class BasicProgressLock<LinuxPlatform>;

constinit ProgressLock progress_lock;

}  // namespace overlap
