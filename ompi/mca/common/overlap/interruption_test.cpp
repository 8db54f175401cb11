// The interrupt thread's loop with real threads, a real lock and a pipe for a socket.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/interruption.hpp"
#include "opal/mca/common/overlap/progress_lock.hpp"
#include "test/support/catch.hpp"

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <poll.h>
#include <unistd.h>

namespace {

using overlap::ProgressLock;
using overlap::Sleep;

class Pipe {
 public:
  Pipe() { REQUIRE(pipe(ends_.data()) == 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  [[nodiscard]] int out() const { return ends_[0]; }
  /// From any thread, so no check of Catch2's.
  void put() const {
    if (write(ends_[1], "x", 1) != 1) std::abort();
  }
  /// @returns  whether there was something
  bool take() const {
    char byte = 0;
    return is_readable() && read(ends_[0], &byte, 1) == 1;
  }
  [[nodiscard]] bool is_readable() const {
    pollfd set{ends_[0], POLLIN, 0};
    return poll(&set, 1, 0) > 0;
  }

 private:
  std::array<int, 2> ends_{};
};

/// A process whose requests end when a byte has come through the socket for each.
///
/// Ownership
///   outstanding_, ended_   the lock; ended_ is read outside too
class Process {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  using Interruption = overlap::Interruption<Process>;

  explicit Process(ProgressLock::Mode mode) {
    lock_.start(mode);
    thread_ = std::thread([this] { interruption_.run(); });
  }
  ~Process() {
    stop_.store(true, std::memory_order_release);  // S1 -> S2
    bell_.put();
    thread_.join();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void start_request() {
    lock_.lock();
    ++outstanding_;
    const bool rings = interruption_.must_ring(true);
    lock_.unlock();
    if (rings) bell_.put();
  }
  /// MPI_Test.
  void progress() {
    lock_.lock();
    turns_.fetch_add(1, std::memory_order_relaxed);
    static_cast<void>(serve());
    lock_.unlock();
  }
  void arrive() const { socket_.put(); }
  [[nodiscard]] std::uint32_t ring_delay_ns() const { return interruption_.ring_delay_ns(); }
  [[nodiscard]] unsigned ended() const { return ended_.load(std::memory_order_acquire); }  // E2

  // The host.
  bool stopping() const { return stop_.load(std::memory_order_acquire); }  // S2
  bool sleep(Sleep sleep) {
    pollfd sets[] = {{bell_.out(), POLLIN, 0}, {socket_.out(), POLLIN, 0}};
    const timespec nap{0, static_cast<long>(sleep.nap_ns)};
    ppoll(sets, sleep.until == Sleep::Until::arrival ? 2 : 1,
          sleep.until == Sleep::Until::time ? &nap : nullptr, nullptr);
    return bell_.take();
  }
  bool try_lock() { return lock_.try_lock(); }
  void unlock() { lock_.unlock(); }
  std::uint32_t turns() const { return turns_.load(std::memory_order_relaxed); }
  bool wanted() const { return outstanding_ > 0; }
  Interruption::Turn turn() {
    ++own_turns;
    const bool moved = serve();
    return {.moved = moved, .readable = socket_.is_readable()};
  }
  static bool is_stale() { return false; }
  static void fence() {}
  static std::uint64_t now_ns() { return 0; }
  static bool look_again(bool) { return false; }
  Atomic<overlap::Doze>& doze() { return doze_; }

  unsigned own_turns = 0;  ///< of the thread; the lock

 private:
  bool serve() {
    if (outstanding_ == 0 || !socket_.take()) return false;
    --outstanding_;
    ended_.store(ended_.load(std::memory_order_relaxed) + 1,
                 std::memory_order_release);  // E1 -> E2
    return true;
  }

  ProgressLock lock_;
  Pipe bell_;
  Pipe socket_;
  unsigned outstanding_ = 0;
  std::atomic<unsigned> ended_{0};
  std::atomic<std::uint32_t> turns_{0};
  std::atomic<bool> stop_{false};
  std::atomic<overlap::Doze> doze_{overlap::Doze::awake};
  Interruption interruption_{*this};
  std::thread thread_;
};

bool await_ended(const Process& process, unsigned count) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (process.ended() < count) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

void run(ProgressLock::Mode mode) {
  Process process(mode);
  constexpr unsigned rounds = 300;
  std::thread network([&process] {
    for (unsigned i = 0; i < rounds; ++i) process.arrive();
  });
  unsigned ended = 0;
  for (unsigned i = 0; i < rounds; ++i) {
    process.start_request();
    for (unsigned calls = i % 4; calls > 0; --calls) process.progress();
    if (i % 3 == 0) REQUIRE(await_ended(process, ended = i + 1));  // outside "MPI"
  }
  REQUIRE(await_ended(process, rounds));
  CHECK(process.ended() == rounds);
  network.join();
}

}  // namespace

TEST_CASE("requests end while their thread is elsewhere", "[interrupt][P4.3][P4.13]") {
  run(ProgressLock::Mode::biased);
  run(ProgressLock::Mode::shared);
}

TEST_CASE("a wake that was claimed and never rung costs no later message", "[interrupt][wake]") {
  Process process(ProgressLock::Mode::biased);
  process.start_request();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  overlap::Doze armed = overlap::Doze::armed;
  while (!process.doze().compare_exchange_strong(armed, overlap::Doze::claimed)) {
    armed = overlap::Doze::armed;
    REQUIRE(std::chrono::steady_clock::now() < end);
    std::this_thread::yield();
  }
  process.start_request();
  process.arrive();
  process.arrive();
  CHECK(await_ended(process, 2));
}

TEST_CASE("the thread takes no turn while nothing is wanted", "[interrupt][P4.12]") {
  Process process(ProgressLock::Mode::biased);
  for (int i = 0; i < 100; ++i) process.arrive();
  for (int i = 0; i < 100; ++i) process.progress();
  CHECK(process.own_turns == 0);
}

namespace {

/// A process in whose place an MPI thread is inside MPI all the time: every look is refused. The
/// calls come while the thread sleeps.
class BusyProcess {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  using Interruption = overlap::Interruption<BusyProcess>;

  bool stopping() const { return sleeps == 3; }
  bool sleep(Sleep sleep) {
    CHECK(sleep.until == Sleep::Until::time);
    ++sleeps;
    rings_for_small += interruption.must_ring(false) ? 1 : 0;
    rings_for_large += interruption.must_ring(true) ? 1 : 0;
    return false;
  }
  static bool try_lock() { return false; }
  static void unlock() {}
  static std::uint32_t turns() { return 0; }
  static bool wanted() { return true; }
  static Interruption::Turn turn() { return {}; }
  static bool is_stale() { return true; }
  static void fence() {}
  static std::uint64_t now_ns() { return 0; }
  static bool look_again(bool) { return false; }
  Atomic<overlap::Doze>& doze() { return doze_; }

  std::atomic<overlap::Doze> doze_{overlap::Doze::awake};
  unsigned sleeps = 0;
  unsigned rings_for_small = 0;
  unsigned rings_for_large = 0;
  Interruption interruption{*this};
};

}  // namespace

TEST_CASE("a large message shortens a nap, a small one beside it does not", "[interrupt][P4.12]") {
  BusyProcess process;
  process.interruption.run();
  CHECK(process.sleeps == 3);
  CHECK(process.rings_for_small == 0);
  CHECK(process.rings_for_large == 3);
}

TEST_CASE("turns before a ring do not make its first look come in vain", "[interrupt][P4.5]") {
  Process process(ProgressLock::Mode::biased);
  for (unsigned i = 0; i < 20; ++i) {
    for (int calls = 0; calls < 100; ++calls) process.progress();  // MPI_Wait of the last round
    process.start_request();
    process.arrive();
    REQUIRE(await_ended(process, i + 1));  // outside "MPI"
  }
  CHECK(process.ring_delay_ns() == overlap::InterruptLoop::nap_min_ns);
}

namespace {

/// A process whose clock the test turns, and whose thread finds an MPI thread inside.
class ClockedProcess {
 public:
  template <class T>
  using Atomic = std::atomic<T>;
  using Interruption = overlap::Interruption<ClockedProcess>;

  bool stopping() const { return has_slept; }
  bool sleep(Sleep sleep) {
    has_slept = true;
    nap_ns = sleep.nap_ns;
    nap_put_off = put_off().nap;
    return false;
  }
  static bool try_lock() { return false; }
  static void unlock() {}
  static std::uint32_t turns() { return 0; }
  static bool wanted() { return true; }
  static Interruption::Turn turn() { return {}; }
  static bool is_stale() { return true; }
  static void fence() {}
  [[nodiscard]] std::uint64_t now_ns() const { return now; }
  static bool look_again(bool) { return false; }
  Atomic<overlap::Doze>& doze() { return doze_; }
  Interruption::PutOff put_off() {
    return interruption.put_off(now, overlap::InterruptLoop::nap_max_ns);
  }
  /// A call with a large message leaves MPI. @returns  whether it rings
  bool leaves() {
    if (!interruption.must_ring(true)) return false;
    interruption.note_ring(interruption.ring_delay_ns());
    return true;
  }

  std::atomic<overlap::Doze> doze_{overlap::Doze::parked};
  std::uint64_t now = 1'000'000'000;
  std::uint32_t nap_ns = 0;
  bool has_slept = false;
  bool nap_put_off = false;
  Interruption interruption{*this};
};

}  // namespace

TEST_CASE("who stays inside MPI puts a ring off, and the next large message takes it back",
          "[interrupt][P4.5]") {
  ClockedProcess process;
  CHECK_FALSE(process.put_off().ring);  // nobody has rung
  REQUIRE(process.leaves());
  CHECK_FALSE(process.leaves());  // one ring is enough
  CHECK(process.put_off().ring);
  CHECK_FALSE(process.put_off().ring);  // far enough away
  process.now += overlap::InterruptLoop::nap_max_ns * 3 / 4;
  CHECK(process.put_off().ring);
  CHECK_FALSE(process.interruption.must_ring(false));
  CHECK(process.leaves());  // soon again
  CHECK_FALSE(process.leaves());
  CHECK(process.put_off().ring);
}

TEST_CASE("who stays inside MPI puts the end of a nap off", "[interrupt][P4.5]") {
  ClockedProcess process;
  process.interruption.run();
  CHECK(process.nap_ns == overlap::InterruptLoop::nap_min_ns);
  CHECK(process.nap_put_off);
  CHECK_FALSE(process.put_off().nap);  // it has ended
}
