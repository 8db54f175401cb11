// The order in which a program's locks are asked for.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {
using namespace overlap::newrma;
constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;

struct OrderBench : Bench {
  explicit OrderBench(Reorder reorder = {}) : Bench(5, 0, reorder) { ends_at_once = true; }
  void lock(Rank target) { REQUIRE(epochs.lock(X, target, false, nullptr)); }
  void unlock(Rank target) { REQUIRE(epochs.unlock(target, nullptr)); }
  /// That rank grants what it was asked for last.
  void grant_by(Rank target) {
    for (auto each = sent.rbegin(); each != sent.rend(); ++each) {
      const auto [to, message] = *each;
      if (to != target || message.notice != Notice::lock) continue;
      epochs.on_notice(to, {.notice = Notice::granted, .id = message.id});
      return;
    }
    FAIL("nobody asked");
  }
  [[nodiscard]] LockType asked_type() const {
    return static_cast<LockType>(sent.back().second.value);
  }
};
}  // namespace

// Who gives it back may wait for it, and must not hold the other one then.
TEST_CASE("a lock that is given back before it is there keeps later ones back", "[epochs][order]") {
  OrderBench bench;
  bench.lock(1);
  bench.lock(2);
  bench.unlock(1);
  CHECK(bench.said() == "lock>1");
  bench.grant_by(1);
  CHECK(bench.said() == "unlock>1, lock>2");
  bench.grant_by(2);
  bench.unlock(2);
  CHECK(bench.said() == "unlock>2");
}

TEST_CASE("a deferred lock that is given back asks at once, and once", "[epochs][order]") {
  OrderBench bench;
  bench.lock(1);
  bench.lock(2);
  bench.unlock(2);
  CHECK(bench.said() == "lock>1, lock>2");
  bench.grant_by(2);
  CHECK(bench.said() == "unlock>2");
  bench.grant_by(1);  // the other one is gone
  CHECK(bench.said().empty());
  bench.unlock(1);
  CHECK(bench.said() == "unlock>1");
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("its grant lets no other one pass those before it", "[epochs][order]") {
  OrderBench bench;
  for (const Rank target : {1, 2, 3}) bench.lock(target);
  bench.unlock(2);
  bench.grant_by(2);
  CHECK(bench.said() == "lock>1, lock>2, unlock>2");
  bench.lock(4);
  CHECK(bench.said().empty());
  bench.grant_by(1);
  CHECK(bench.said() == "lock>3");
  bench.grant_by(3);
  CHECK(bench.said() == "lock>4");
}

TEST_CASE("a lock passes one that was given back before, where an info key says so",
          "[epochs][order]") {
  const bool may_pass = GENERATE(true, false);
  OrderBench bench({.access_after_access = may_pass});
  bench.lock(1);
  bench.unlock(1);
  bench.lock(2);
  CHECK(bench.said() == (may_pass ? "lock>1, lock>2" : "lock>1"));
  bench.grant_by(1);
  CHECK(bench.said() == (may_pass ? "unlock>1" : "unlock>1, lock>2"));
}

// The threads of a process lock each for itself.
TEST_CASE("a lock waits for none of another caller", "[epochs][order]") {
  OrderBench bench;
  const int one = 0, other = 0;
  const auto lock = [&](Rank target, Caller caller) {
    REQUIRE(bench.epochs.lock(X, target, false, nullptr, false, caller));
  };
  lock(1, &one);
  lock(2, &one);
  lock(3, &other);
  lock(4, &other);
  CHECK(bench.said() == "lock>1, lock>3");
  bench.grant_by(3);
  CHECK(bench.said() == "lock>4");
  bench.grant_by(1);
  CHECK(bench.said() == "lock>2");
}

TEST_CASE("the first of a caller's that must not ask keeps the others back", "[epochs][order]") {
  OrderBench bench({.access_after_access = true});
  bench.lock(1);
  bench.lock(2);
  bench.unlock(1);
  bench.lock(3);  // may pass the first, and not the second
  CHECK(bench.said() == "lock>1");
  bench.grant_by(1);
  CHECK(bench.said() == "unlock>1, lock>2");
  bench.grant_by(2);
  CHECK(bench.said() == "lock>3");
}

// An exclusive one in the queue may wait for what it holds, of this window or another one.
TEST_CASE("who holds locks comes as a guest", "[epochs][order]") {
  OrderBench bench;
  Bench other;
  Epochs others(other, bench.locks_of_all, 0, 5, {});
  other.mapped = {1};
  const bool checks = GENERATE(true, false);
  const auto asks_as = [&](LockType type) {
    REQUIRE(bench.epochs.lock(S, 1, false, nullptr));
    CHECK(bench.asked_type() == type);
    bench.grant_by(1);
    bench.unlock(1);
  };
  asks_as(S);
  SECTION("while it holds one of another window") {
    REQUIRE(others.lock(X, 2, !checks, nullptr));
    asks_as(checks ? LockType::guest : S);  // MPI_MODE_NOCHECK takes none
    REQUIRE(others.unlock(2, nullptr));
    asks_as(S);
  }
  SECTION("while it has entered one without an epoch") {
    REQUIRE(others.try_lock(S, 1));
    asks_as(LockType::guest);
    REQUIRE(others.try_unlock(1));
    asks_as(S);
  }
  SECTION("while it has locked all, those that it has asked for") {
    REQUIRE(others.lock_all(!checks, {}, nullptr));
    asks_as(S);
    static_cast<void>(others.access_to(2));
    asks_as(checks ? LockType::guest : S);
    REQUIRE(others.unlock_all(nullptr));
    asks_as(S);
  }
  SECTION("of this window") {
    REQUIRE(bench.epochs.lock(X, 2, !checks, nullptr));
    if (checks) bench.grant_by(2);
    asks_as(checks ? LockType::guest : S);
  }
}

TEST_CASE("an exclusive lock is never a guest", "[epochs][order]") {
  OrderBench bench;
  bench.locks_of_all.held = 1;
  bench.lock(2);
  CHECK(bench.asked_type() == X);
}

TEST_CASE("so does who locks all, in the order of the ranks", "[epochs][order]") {
  OrderBench bench;
  bench.locks_of_all.held = 1;
  bench.mapped = {1, 2};
  const auto inside = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(inside, X));
  REQUIRE(bench.epochs.lock_all(false, both, &bench.event("granted")));
  CHECK(bench.locks[1].leave(X) == 1);
  const auto other = bench.locks[2].take();
  CHECK(bench.locks[2].try_enter(other, X));  // not asked for yet
  bench.locks[2].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
}
