// The lock under which a process calls BTLs and protocol objects: next to free for one owner
// thread.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <atomic>
#include <cstdint>

namespace overlap {

/// What the progress lock needs from the machine. The exhaustive test puts a model with store
/// buffers in its place.
struct LinuxPlatform {
  template <class T>
  using Atomic = std::atomic<T>;
  using Token = void*;  ///< names a running thread; nullptr names none

#if defined(__SANITIZE_THREAD__)
  static constexpr bool tsan = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
  static constexpr bool tsan = true;
#else
  static constexpr bool tsan = false;
#endif
#else
  static constexpr bool tsan = false;
#endif
  /// Entering twice is an error of ours that would release the outer entry: one compare of a word
  /// that the entry writes anyway.
  static constexpr bool checks = true;
  /// ThreadSanitizer does not know membarrier: there the owner's store and load order themselves.
  static constexpr std::memory_order owner_store_order =
      tsan ? std::memory_order_seq_cst : std::memory_order_relaxed;
  static constexpr std::memory_order owner_load_order =
      tsan ? std::memory_order_seq_cst : std::memory_order_acquire;
  static constexpr unsigned spin_count = 100;  ///< looks at a taken lock before the thread sleeps

  [[gnu::always_inline]] static Token self() noexcept { return __builtin_thread_pointer(); }
  [[gnu::always_inline]] static void compiler_fence() noexcept {
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }

  /// @returns  false when the kernel has no private expedited membarrier (old, or a seccomp
  ///           filter): biased mode is then not available
  [[nodiscard]] static bool offers_biased() noexcept;
  /// Register this process for membarrier(), once. The kernel takes about 10 ms for it where the
  /// process has threads: so not in MPI_Init, but by the first guest. @thread  any
  static void ready_guest() noexcept;
  /// Make every running thread of the process pass a full memory barrier.
  [[nodiscard]] static bool membarrier() noexcept;
  static void pause() noexcept;
  static void wait(Atomic<std::uint32_t>& word,
                   std::uint32_t expected) noexcept;  ///< futex; may return early
  static void wake_one(Atomic<std::uint32_t>& word) noexcept;
  static void wake_all(Atomic<std::uint32_t>& word) noexcept;
  static void await_zero(const Atomic<std::uint32_t>& word) noexcept;  ///< poll with growing naps
  [[noreturn]] static void fail(const char* sentence) noexcept;
};

/// Mutual exclusion of all threads that touch a process's BTLs and protocol objects. One per
/// process, not recursive.
///
/// Two modes, chosen once:
///   biased  one owner thread (the main thread) takes and leaves the lock with a plain store, a
///           compiler barrier and a plain load. Any other thread is a guest: it closes the gate,
///           calls membarrier and looks whether the owner is inside.
///   shared  MPI_THREAD_MULTIPLE: a three-state futex mutex for everybody.
///
/// Ownership
///   *state_   biased: owner only writes (0 out, 1 in or knocking). shared: everybody, futex mutex
///             (0 free, 1 held, 2 held and somebody may sleep). Not zero means to a reader outside:
///             an MPI thread is progressing.
///   gate_     guests write 0 -> 1 and 1|2 -> 0; owner and guests mark 1 -> 2 before they sleep on
///             it. Unused in shared mode.
///   holder_   the thread inside, except the owner in biased mode; written while inside
///   owner_    start() and stop() only, while no other thread uses the lock
/// Orders
///   Dekker: O1 state_.store(1) before O2 gate_.load by the owner; G1 gate_ 0 -> 1, G2 membarrier,
///     G3 state_.load by the guest.
///     G2 is a full barrier on both sides. If the owner's O1 is older than it, G3 sees 1; if not,
///     O2 sees the closed gate. Without G2 the owner's O1 may wait in its store buffer while O2 and
///     G3 both read "free": both inside.
///   H1 state_.store(0, release) -> G3 state_.load(acquire): what the owner did inside, before the
///      guest enters
///   H2 gate_.exchange(0, release) -> O2, G1 gate_ read (acquire): what a guest did inside, before
///      the next one enters
///   H3 shared: state_.exchange(0, release) -> state_ 0 -> 1|2 (acquire)
template <class Platform>
class BasicProgressLock {
 public:
  using Word = typename Platform::template Atomic<std::uint32_t>;
  enum class Mode : std::uint8_t { biased, shared };

  constexpr BasicProgressLock() noexcept = default;
  BasicProgressLock(const BasicProgressLock&) = delete;
  BasicProgressLock& operator=(const BasicProgressLock&) = delete;

  /// Choose the mode; the calling thread becomes the owner of a biased lock. Before the first call
  /// the lock is shared. A biased lock that the kernel cannot support becomes shared: ask mode().
  /// @thread  the only one that knows the lock; lock free
  void start(Mode mode) noexcept;

  /// Put the state word elsewhere, for instance into memory that a helper process reads; nullptr
  /// brings it home.
  /// @thread  the only one that knows the lock; lock free
  void place_state(Word* word) noexcept;

  [[nodiscard]] Mode mode() const noexcept { return owner_ ? Mode::biased : Mode::shared; }

  /// Before the first entry of a thread that is not the owner: takes the kernel's time outside it.
  void ready_guest() const noexcept {
    if (owner_) Platform::ready_guest();
  }

  /// Enter; sleep if another thread is inside. Correct from any thread, cheap for the owner.
  [[gnu::always_inline]] void lock() noexcept {
    check_outside();
    if (Platform::self() == owner_) [[likely]] {
      state_->store(1, Platform::owner_store_order);  // O1, pairs with G3
      Platform::compiler_fence();
      if (gate_.load(Platform::owner_load_order) == 0) [[likely]]  // O2, pairs with G1
        return;
      lock_contended_owner();
      return;
    }
    lock_other();
  }

  /// Enter if nobody is inside. May also fail when somebody only tries at the same moment.
  [[nodiscard, gnu::always_inline]] bool try_lock() noexcept {
    check_outside();
    if (Platform::self() == owner_) [[likely]] {
      state_->store(1, Platform::owner_store_order);  // O1, pairs with G3
      Platform::compiler_fence();
      if (gate_.load(Platform::owner_load_order) == 0) [[likely]]  // O2, pairs with G1
        return true;
      state_->store(0, std::memory_order_release);  // H1
      return false;
    }
    return try_lock_other();
  }

  /// Leave.
  /// @thread  the one that entered
  [[gnu::always_inline]] void unlock() noexcept {
    if (Platform::self() == owner_) [[likely]] {
      state_->store(0, std::memory_order_release);  // H1, pairs with G3
      return;
    }
    unlock_other();
  }

  /// Is the calling thread inside? Exact: each branch reads a word that, as far as the answer goes,
  /// only this thread writes.
  [[nodiscard]] bool held_by_me_hint() const noexcept {
    const auto me = Platform::self();
    if (me == owner_) return state_->load(std::memory_order_relaxed) != 0;
    return holder_.load(std::memory_order_relaxed) == me;
  }

 private:
  [[gnu::always_inline]] void check_outside() const noexcept {
    if constexpr (Platform::checks)
      if (held_by_me_hint()) Platform::fail("entered twice by one thread");
  }

  void lock_contended_owner() noexcept;
  void lock_other() noexcept;
  [[nodiscard]] bool try_lock_other() noexcept;
  void unlock_other() noexcept;

  void lock_mutex(Word& word) noexcept;
  bool owner_left() noexcept;

  alignas(64) typename Platform::Token owner_{};
  Word* state_ = &home_state_;
  Word gate_{0};
  Word home_state_{0};
  typename Platform::template Atomic<typename Platform::Token> holder_{nullptr};
};

using ProgressLock = BasicProgressLock<LinuxPlatform>;
extern template class BasicProgressLock<LinuxPlatform>;
static_assert(sizeof(ProgressLock) == 64 && alignof(ProgressLock) == 64,
              "one cache line, nobody else's data on it");

/// The lock of this process.
extern ProgressLock progress_lock;

/// Hold a progress lock for one scope.
template <class Lock>
class BasicGuard {
 public:
  [[nodiscard, gnu::always_inline]] explicit BasicGuard(Lock& lock) noexcept : lock_(lock) {
    lock_.lock();
  }
  [[gnu::always_inline]] ~BasicGuard() { lock_.unlock(); }
  BasicGuard(const BasicGuard&) = delete;
  BasicGuard& operator=(const BasicGuard&) = delete;

 private:
  Lock& lock_;
};
using Guard = BasicGuard<ProgressLock>;

/// The same where the calling thread may be inside already: in a callback of a BTL, or in a BTL
/// that the code under the lock calls.
template <class Lock>
class BasicNestedGuard {
 public:
  [[nodiscard, gnu::always_inline]] explicit BasicNestedGuard(Lock& lock) noexcept
      : entered_(lock.held_by_me_hint() ? nullptr : &lock) {
    if (entered_ != nullptr) [[unlikely]]
      entered_->lock();
  }
  [[gnu::always_inline]] ~BasicNestedGuard() {
    if (entered_ != nullptr) [[unlikely]]
      entered_->unlock();
  }
  BasicNestedGuard(const BasicNestedGuard&) = delete;
  BasicNestedGuard& operator=(const BasicNestedGuard&) = delete;

 private:
  Lock* entered_;  ///< nullptr: an outer scope of this thread leaves it
};
using NestedGuard = BasicNestedGuard<ProgressLock>;

}  // namespace overlap
