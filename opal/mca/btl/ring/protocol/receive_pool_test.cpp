// The pool of receive buffers: it grows with bursts and connections, and with nothing else.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_pool.hpp"

#include <algorithm>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

/// A receiver that computes while messages come, and then takes all of them, 16 at a time.
struct Receiver {
  explicit Receiver(ReceivePool& of) : pool(of) { grow(); }

  void grow() {
    if (const std::uint32_t more = pool.wanted(); more > 0) {
      pool.grown(more);
      posted += more;
    }
  }
  /// @returns  messages that found no buffer at first
  std::uint32_t burst(std::uint32_t messages) {
    std::uint32_t waiting = std::min(messages, posted);
    std::uint32_t late = messages - waiting;
    const std::uint32_t refused = late;
    posted -= waiting;
    while (waiting > 0) {
      for (int i = 0; i < 16 && waiting > 0; ++i) {
        --waiting;
        pool.taken();
        ++posted;
      }
      grow();
      const std::uint32_t again = std::min(late, posted);
      late -= again;
      posted -= again;
      waiting += again;
    }
    pool.drained();
    return refused;
  }

  ReceivePool& pool;
  std::uint32_t posted = 0;
};

}  // namespace

TEST_CASE("ReceivePool: a burst that comes again finds room") {
  ReceivePool pool(128, 1024);
  Receiver receiver(pool);
  CHECK(pool.size() == 128);
  CHECK(receiver.burst(500) == 500 - 128);
  std::uint32_t refused = 1;
  for (int i = 0; i < 4 && refused > 0; ++i) refused = receiver.burst(500);
  CHECK(refused == 0);
  CHECK(pool.size() <= 1024);
  CHECK(receiver.posted == pool.size());
}

TEST_CASE("ReceivePool: steady traffic and small bursts change nothing") {
  ReceivePool pool(128, 1024);
  Receiver receiver(pool);
  for (int i = 0; i < 10000; ++i) receiver.burst(static_cast<std::uint32_t>(i % 95));
  CHECK(pool.size() == 128);
  receiver.burst(96);  // a quarter is left
  CHECK(pool.size() == 256);
}

TEST_CASE("ReceivePool: each connection has some, up to the limit") {
  ReceivePool pool(8, 100);
  Receiver receiver(pool);
  for (int i = 0; i < 5; ++i) pool.connected();
  receiver.grow();
  CHECK(pool.size() == 5 * ReceivePool::per_connection);
  for (int i = 0; i < 50; ++i) pool.connected();
  receiver.grow();
  CHECK(pool.size() == 100);
  for (int i = 0; i < 55; ++i) pool.disconnected();
  CHECK(pool.wanted() == 0);  // it never shrinks
}

TEST_CASE("ReceivePool: without memory it stays as it is") {
  ReceivePool pool(8, 100);
  Receiver receiver(pool);
  receiver.burst(50);
  const std::uint32_t size = pool.size();
  pool.stop();
  receiver.burst(100);
  CHECK(pool.size() == size);
}
