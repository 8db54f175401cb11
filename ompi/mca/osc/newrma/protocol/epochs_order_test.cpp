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

// An exclusive one in the queue may wait for a lock of the other window.
TEST_CASE("who holds locks of other windows comes as a guest", "[epochs][order]") {
  OrderBench bench;
  bench.holds_others = GENERATE(true, false);
  REQUIRE(bench.epochs.lock(S, 1, false, nullptr));
  CHECK(bench.asked_type() == (bench.holds_others ? LockType::guest : S));
  bench.grant_by(1);
  bench.unlock(1);
  bench.lock(2);
  CHECK(bench.asked_type() == X);
}

TEST_CASE("so does who locks all, in the order of the ranks", "[epochs][order]") {
  OrderBench bench;
  bench.holds_others = true;
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
