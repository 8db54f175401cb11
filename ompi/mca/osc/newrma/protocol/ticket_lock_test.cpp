// The fair lock alone, and with real threads.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/ticket_lock.hpp"
#include "test/support/catch.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <thread>
#include <vector>

namespace {

using overlap::newrma::LockType;
using overlap::newrma::TicketLock;
constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;

/// An atomic that begins shortly before it wraps. That of eight bytes counts in twos in its upper
/// half.
template <class T>
struct Worn : std::atomic<T> {
  explicit Worn(T) : std::atomic<T>(sizeof(T) == 8 ? T(-6) << (sizeof(T) * 4) : T(-3)) {}
};

}  // namespace

TEST_CASE("all zero bytes are a free lock", "[ticket_lock]") {
  STATIC_REQUIRE(sizeof(TicketLock<>) == 16);
  const TicketLock<> lock;
  for (const std::byte each : std::bit_cast<std::array<std::byte, 16>>(
           *reinterpret_cast<const std::array<char, 16>*>(reinterpret_cast<const char*>(&lock))))
    CHECK(each == std::byte{0});
}

TEST_CASE("exclusive ones enter one by one", "[ticket_lock]") {
  TicketLock<> lock;
  const auto first = lock.take();
  const auto second = lock.take();
  CHECK_FALSE(lock.try_enter(second, X));
  CHECK(lock.try_enter(first, X));
  CHECK_FALSE(lock.try_enter(second, X));
  lock.leave(X);
  CHECK(lock.try_enter(second, X));
  lock.leave(X);
  CHECK(lock.try_enter(lock.take(), X));
}

TEST_CASE("shared neighbours are inside together", "[ticket_lock]") {
  TicketLock<> lock;
  const auto a = lock.take();
  const auto b = lock.take();
  const auto writer = lock.take();
  const auto c = lock.take();
  CHECK_FALSE(lock.try_enter(b, S));  // in their order
  CHECK(lock.try_enter(a, S));
  CHECK(lock.try_enter(b, S));
  CHECK_FALSE(lock.try_enter(writer, X));
  CHECK_FALSE(lock.try_enter(c, S));  // does not pass the writer
  lock.leave(S);
  CHECK_FALSE(lock.try_enter(writer, X));
  lock.leave(S);
  CHECK_FALSE(lock.try_enter(c, S));
  CHECK(lock.try_enter(writer, X));
  CHECK_FALSE(lock.try_enter(c, S));
  lock.leave(X);
  CHECK(lock.try_enter(c, S));
}

TEST_CASE("a shared one that left lets nobody overtake", "[ticket_lock]") {
  TicketLock<> lock;
  const auto a = lock.take();
  CHECK(lock.try_enter(a, S));
  lock.leave(S);
  const auto writer = lock.take();
  const auto b = lock.take();
  CHECK_FALSE(lock.try_enter(b, S));
  CHECK(lock.try_enter(writer, X));
}

TEST_CASE("tickets wrap", "[ticket_lock]") {
  TicketLock<Worn> lock;
  std::uint32_t wrapped = 0;
  for (int round = 0; round < 6; ++round) {
    CAPTURE(round);
    const auto a = lock.take();
    const auto b = lock.take();
    const auto writer = lock.take();
    if (writer < a) ++wrapped;
    CHECK_FALSE(lock.try_enter(writer, X));
    CHECK(lock.try_enter(a, S));
    CHECK(lock.try_enter(b, S));
    CHECK_FALSE(lock.try_enter(writer, X));
    lock.leave(S);
    lock.leave(S);
    CHECK(lock.try_enter(writer, X));
    lock.leave(X);
  }
  // The numbers of the first round are -3, -2, -1: the second begins at 0.
  CHECK(wrapped == 0);
  TicketLock<Worn> other;
  static_cast<void>(other.try_enter(other.take(), X));
  other.leave(X);
  const auto last = other.take();
  const auto before_zero = other.take();
  const auto zero = other.take();
  CHECK(zero == 0);
  CHECK(other.try_enter(last, X));
  CHECK_FALSE(other.try_enter(zero, S));
  other.leave(X);
  CHECK(other.try_enter(before_zero, S));
  CHECK(other.try_enter(zero, S));
}

TEST_CASE("threads keep each other out", "[ticket_lock]") {
  constexpr std::size_t thread_count = 4;
  constexpr int rounds = 2000;
  TicketLock<> lock;
  std::array<int, 2> data{};  // plain: TSan looks
  std::atomic<int> torn{0};
  const auto body = [&](std::size_t me) {
    for (int round = 0; round < rounds; ++round) {
      const LockType type = (static_cast<std::size_t>(round) + me) % 3 == 0 ? X : S;
      const auto ticket = lock.take();
      while (!lock.try_enter(ticket, type)) std::this_thread::yield();
      if (type == X) {
        ++data[0];
        ++data[1];
      } else if (data[0] != data[1]) {
        torn.fetch_add(1);
      }
      lock.leave(type);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
  int writers = 0;
  for (std::size_t me = 0; me < thread_count; ++me)
    for (std::size_t round = 0; round < rounds; ++round) writers += (round + me) % 3 == 0 ? 1 : 0;
  CHECK(torn.load() == 0);
  CHECK(data[0] == writers);
  CHECK(data[1] == writers);
}

TEST_CASE("a thread takes and gives back for another one", "[ticket_lock]") {
  TicketLock<> lock;
  int data = 0;
  std::atomic<int> granted{0};
  std::atomic<int> finished{0};
  constexpr int rounds = 500;
  std::thread remote([&] {
    for (int round = 1; round <= rounds; ++round) {
      while (granted.load(std::memory_order_acquire) != round) std::this_thread::yield();
      ++data;
      finished.store(round, std::memory_order_release);
    }
  });
  std::thread neighbour([&] {
    for (int round = 0; round < rounds; ++round) {
      const auto ticket = lock.take();
      while (!lock.try_enter(ticket, X)) std::this_thread::yield();
      ++data;
      lock.leave(X);
    }
  });
  for (int round = 1; round <= rounds; ++round) {
    const auto ticket = lock.take();
    while (!lock.try_enter(ticket, X)) std::this_thread::yield();
    granted.store(round, std::memory_order_release);
    while (finished.load(std::memory_order_acquire) != round) std::this_thread::yield();
    lock.leave(X);
  }
  remote.join();
  neighbour.join();
  CHECK(data == 2 * rounds);
}
