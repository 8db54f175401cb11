// Entering the transport, with one thread and with several.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_guard.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "test/support/catch.hpp"

namespace overlap::ring {
namespace {

class Threads {
 public:
  Threads() { opal_set_using_threads(true); }
  ~Threads() { opal_set_using_threads(false); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
};

}  // namespace

TEST_CASE("with one thread the transport is entered without a lock", "[guard]") {
  const Guard guard;
  CHECK_FALSE(progress_lock.held_by_me_hint());
}

TEST_CASE("with threads the transport is entered under the progress lock", "[guard]") {
  const Threads threads;
  {
    const Guard guard;
    CHECK(progress_lock.held_by_me_hint());
    const Guard in_a_callback;
    CHECK(progress_lock.held_by_me_hint());
  }
  CHECK_FALSE(progress_lock.held_by_me_hint());
}

TEST_CASE("a caller that holds the progress lock keeps it", "[guard]") {
  const Threads threads;
  const overlap::Guard outer(progress_lock);
  { const Guard guard; }
  CHECK(progress_lock.held_by_me_hint());
}

TEST_CASE("the transport calls back while another thread makes progress", "[guard]") {
  // One thread enters the transport and is called back by it, the other comes through the lock:
  // with a lock of its own in the transport each would have what the other waits for.
  constexpr int rounds = 10;
  const Threads threads;
  alarm(30);                  // a deadlock ends the test
  int entries = 0;            // under the lock
  std::atomic<int> begun{0};  // the round in which the lock is held; orders nothing
  std::thread caller([&entries, &begun] {
    for (int round = 1; round <= rounds; ++round) {
      while (begun.load(std::memory_order_relaxed) < round) std::this_thread::yield();
      const Guard guard;
      const NestedGuard callback(progress_lock);
      ++entries;
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    const overlap::Guard progress(progress_lock);
    begun.store(round, std::memory_order_relaxed);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the caller comes
    const Guard guard;
    ++entries;
  }
  caller.join();
  alarm(0);
  CHECK(entries == 2 * rounds);
}

}  // namespace overlap::ring
