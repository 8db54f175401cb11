// Locks that are free while there is no other epoch: entered at once, an epoch when more is asked.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {
using namespace overlap::newrma;
constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;

bool try_lock(WindowLock& lock, LockType type) {
  const auto ticket = lock.try_take(type);
  return ticket && lock.try_enter(*ticket, type);
}

bool is_free(WindowLock& lock) {
  if (!try_lock(lock, X)) return false;
  lock.leave(X);
  return true;
}

const std::vector<Rank> mapped_ones{0, 1, 3};

/// Rank 0 maps the locks of ranks 0, 1 and 3.
struct MappingBench : Bench {
  MappingBench() { mapped = {1, 3}; }
};
}  // namespace

TEST_CASE("a free lock is entered and left without a message", "[epochs][entered]") {
  MappingBench bench;
  const LockType type = GENERATE(S, X);
  REQUIRE(bench.epochs.lock(type, 1, false, &bench.event("granted")));
  CHECK(bench.said() == "granted");
  CHECK(bench.epochs.has_entered(1));
  CHECK_FALSE(bench.epochs.has_entered(3));
  CHECK(bench.epochs.in_use());
  CHECK(bench.epochs.is_open());
  CHECK(bench.epochs.is_flushed(1));
  CHECK_FALSE(is_free(bench.locks[1]));
  CHECK(try_lock(bench.locks[1], S) == (type == S));
  if (type == S) bench.locks[1].leave(S);
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  CHECK(bench.said() == "ended");
  CHECK(is_free(bench.locks[1]));
  CHECK_FALSE(bench.epochs.has_entered(1));
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("what is not free, not mapped or not to be asked for is refused", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(try_lock(bench.locks[1], S));
  CHECK_FALSE(bench.epochs.try_lock(X, 1));
  CHECK_FALSE(bench.epochs.try_lock(S, 2));
  CHECK_FALSE(bench.epochs.try_unlock(1));
  CHECK_FALSE(bench.epochs.in_use());
  CHECK(bench.epochs.try_lock(S, 1));
  CHECK_FALSE(bench.epochs.try_lock(S, 3));
  CHECK_FALSE(bench.epochs.try_unlock(3));
  CHECK_FALSE(bench.epochs.try_unlock_all());
  CHECK(bench.epochs.try_unlock(1));
  bench.locks[1].leave(S);
  REQUIRE(bench.epochs.lock(X, 1, true, nullptr));
  CHECK_FALSE(bench.epochs.has_entered(1));
}

TEST_CASE("behind an epoch that has not ended a lock waits", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock(X, 2, false, nullptr));
  REQUIRE(bench.epochs.unlock(2, nullptr));
  REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("granted")));
  CHECK_FALSE(bench.epochs.has_entered(1));
  CHECK(bench.said() == "lock>2");
  CHECK(is_free(bench.locks[1]));
  bench.grant();
  CHECK(bench.said() == "unlock>2, granted");
  CHECK_FALSE(is_free(bench.locks[1]));
}

TEST_CASE("operations get the epoch of a lock that was entered", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  bench.put(1, "a");
  CHECK(bench.said() == "start a");
  CHECK_FALSE(bench.epochs.has_entered(1));
  CHECK_FALSE(is_free(bench.locks[1]));
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  bench.done("a");
  CHECK(bench.said() == "flush>1");
  CHECK_FALSE(is_free(bench.locks[1]));
  bench.flushed();
  CHECK(bench.said() == "ended");
  CHECK(is_free(bench.locks[1]));
}

TEST_CASE("a second lock, and an exposure, beside one that was entered", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock(S, 3, false, nullptr));
  REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("second")));
  CHECK(bench.said() == "second");
  REQUIRE(bench.epochs.post(only_2));
  CHECK(bench.said() == "post>2");
  REQUIRE(bench.epochs.unlock(3, &bench.event("first ended")));
  CHECK(bench.said() == "first ended");
  CHECK(is_free(bench.locks[3]));
  CHECK_FALSE(is_free(bench.locks[1]));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(is_free(bench.locks[1]));
}

TEST_CASE("an exposure beside a lock that was entered does not end it", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  REQUIRE(bench.epochs.post(only_2));
  REQUIRE(bench.epochs.wait(nullptr));
  bench.hear(2, Notice::complete);
  CHECK(bench.epochs.in_passive_epoch());
  CHECK_FALSE(is_free(bench.locks[1]));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(is_free(bench.locks[1]));
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("a lock of all enters what is mapped, and asks others later", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock_all(false, mapped_ones, &bench.event("granted")));
  CHECK(bench.said() == "granted");
  for (const Rank each : mapped_ones) CHECK(bench.epochs.has_entered(each));
  CHECK_FALSE(bench.epochs.has_entered(2));
  REQUIRE(bench.epochs.flush(2, false, bench.event("flushed")));
  REQUIRE(bench.epochs.flush_all(false, bench.event("all flushed")));
  CHECK(bench.said() == "flushed, all flushed");
  bench.put(2, "a");
  CHECK(bench.said() == "lock>2");
  bench.put(3, "b");
  CHECK(bench.said() == "start b");
  REQUIRE(bench.epochs.unlock_all(nullptr));
  bench.grant();
  CHECK(bench.said() == "start a");
  CHECK(is_free(bench.locks[0]));
  CHECK(is_free(bench.locks[1]));
  CHECK_FALSE(is_free(bench.locks[3]));
}

TEST_CASE("a lock of all without operations", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(bench.epochs.lock_all(false, mapped_ones, nullptr));
  REQUIRE(bench.epochs.unlock_all(&bench.event("ended")));
  CHECK(bench.said() == "ended");
  for (const Rank each : mapped_ones) CHECK(is_free(bench.locks[each]));
}

TEST_CASE("a lock of all that cannot enter one holds none meanwhile", "[epochs][entered]") {
  MappingBench bench;
  REQUIRE(try_lock(bench.locks[3], X));
  CHECK_FALSE(bench.epochs.try_lock_all(mapped_ones));
  CHECK_FALSE(bench.epochs.in_use());
  CHECK(is_free(bench.locks[0]));
  CHECK(is_free(bench.locks[1]));
  REQUIRE(bench.epochs.lock_all(false, mapped_ones, &bench.event("granted")));
  CHECK(bench.said().empty());
  bench.locks[3].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
}

TEST_CASE("who waits for the own lock gets it when it is left", "[epochs][entered]") {
  Bench bench;
  const bool of_all = GENERATE(false, true);
  if (of_all)
    REQUIRE(bench.epochs.lock_all(false, only_0, nullptr));
  else
    REQUIRE(bench.epochs.lock(X, 0, false, nullptr));
  bench.hear(1, Notice::lock, static_cast<std::uint64_t>(X));
  CHECK(bench.said().empty());
  // Answers come in while the grant goes out.
  bench.inside_send = [&] { bench.epochs.on_notice(1, {.notice = Notice::unlock, .type = X}); };
  if (of_all)
    REQUIRE(bench.epochs.unlock_all(nullptr));
  else
    REQUIRE(bench.epochs.unlock(0, nullptr));
  CHECK(bench.said() == "granted>1");
  CHECK(is_free(bench.locks[0]));
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("those who may enter next are told", "[epochs][entered]") {
  MappingBench bench;
  bench.says_tickets = true;
  const LockType type = GENERATE(S, X);
  REQUIRE(bench.epochs.lock(type, 1, false, nullptr));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(bench.said().empty());  // nobody waits
  REQUIRE(bench.epochs.lock(type, 1, false, nullptr));
  const auto next = bench.locks[1].take();
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(bench.said() == "passed 1");
  CHECK(bench.locks[1].try_enter(next, X));
}
