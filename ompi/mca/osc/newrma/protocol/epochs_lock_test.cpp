// Locks: by messages, in mapped memory, at this rank for others.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {
using namespace overlap::newrma;
constexpr LockType S = LockType::shared;
constexpr LockType X = LockType::exclusive;

std::uint64_t value_of(LockType type) { return static_cast<std::uint64_t>(type); }
}  // namespace

TEST_CASE("operations start with the grant, in their order", "[epochs][lock]") {
  Bench bench;
  REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("granted")));
  bench.put(1, "a");
  bench.get(1, "b");
  CHECK(bench.said() == "lock>1");
  CHECK(bench.sent.back().second.value == value_of(X));
  bench.grant();
  CHECK(bench.said() == "granted, start a, start b");
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  bench.done("b");
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "unlock>1");
  CHECK(bench.sent.back().second.type == X);
  bench.unlocked();
  CHECK(bench.said() == "ended");
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("an unlock without operations waits for the grant", "[epochs][lock]") {
  Bench bench;
  REQUIRE(bench.epochs.lock(S, 1, false, nullptr));
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  CHECK(bench.said() == "lock>1");
  bench.grant();
  CHECK(bench.said() == "unlock>1, ended");  // nobody waits for what was not written
}

TEST_CASE("an unlock is answered where an answer is asked for", "[epochs][lock]") {
  Bench bench;
  bench.hear(1, Notice::lock, value_of(S));
  bench.hear(1, Notice::unlock, 0);
  CHECK(bench.said() == "granted>1");
  CHECK(bench.locks[0].try_enter(bench.locks[0].take(), X));
}

TEST_CASE("NOCHECK asks for nothing and confirms what was written", "[epochs][lock]") {
  Bench bench;
  const bool is_mapped = GENERATE(false, true);
  if (is_mapped) bench.mapped.insert(1);
  REQUIRE(bench.epochs.lock(X, 1, true, &bench.event("granted")));
  CHECK(bench.said() == "granted");
  CHECK_FALSE(bench.epochs.awaits_lock());
  bench.put(1, "a");
  CHECK(bench.said() == "start a");
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  bench.done("a");
  CHECK(bench.said() == "flush>1");
  bench.flushed();
  CHECK(bench.said() == "ended");
  CHECK(bench.locks[1].try_enter(bench.locks[1].take(), X));  // never touched
}

TEST_CASE("NOCHECK without a write ends at once", "[epochs][lock]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock(S, 1, true, nullptr));
  bench.get(1, "a");
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  CHECK(bench.said() == "start a, ended");
}

TEST_CASE("several locks at a time", "[epochs][lock]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock(S, 1, false, nullptr));
  REQUIRE(bench.epochs.lock(X, 2, false, nullptr));
  REQUIRE(bench.epochs.lock(X, 3, false, nullptr));
  bench.put(1, "a");
  bench.put(2, "b");
  CHECK(bench.said() == "lock>1");  // one after the other
  bench.grant();
  CHECK(bench.said() == "start a, lock>2");
  bench.grant();
  CHECK(bench.said() == "start b, lock>3");
  REQUIRE(bench.epochs.unlock(2, &bench.event("second")));
  bench.unlocked();
  CHECK(bench.said() == "unlock>2, second");
  CHECK(bench.epochs.in_passive_epoch());
}

TEST_CASE("what needs no lock waits for none", "[epochs][lock]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  REQUIRE(bench.epochs.lock(X, 2, true, nullptr));
  REQUIRE(bench.epochs.post(only_3));
  bench.get(2, "a");
  CHECK(bench.said() == "lock>1, post>3, start a");
}

TEST_CASE("a mapped lock is taken without a message", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  const auto other = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(other, S));
  REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("granted")));
  bench.put(1, "a");
  bench.epochs.poll();
  CHECK(bench.said().empty());
  CHECK(bench.epochs.awaits_lock());
  bench.locks[1].leave(S);
  bench.epochs.poll();
  CHECK(bench.said() == "granted, start a");
  CHECK_FALSE(bench.epochs.awaits_lock());
  const auto next = bench.locks[1].take();
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  bench.done("a");
  CHECK(bench.said() == "flush>1");
  CHECK_FALSE(bench.locks[1].try_enter(next, X));  // not before it is written
  bench.flushed();
  CHECK(bench.said() == "ended");
  CHECK(bench.locks[1].try_enter(next, X));
}

TEST_CASE("whoever lets the next tickets in says so", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  bench.says_tickets = true;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  CHECK(bench.said().empty());  // an exclusive one lets nobody in, and does not wait
  const auto next = bench.locks[1].take();
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(bench.said() == "passed 1");
  REQUIRE(bench.locks[1].try_enter(next, X));
  REQUIRE(bench.epochs.lock(S, 1, false, nullptr));
  CHECK(bench.said() == "took 1");
  bench.locks[1].leave(X);
  static_cast<void>(bench.locks[1].take());
  bench.epochs.poll();
  CHECK(bench.said() == "passed 1");  // the next may be shared, too
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK(bench.said() == "passed 1");
  bench.hear(2, Notice::lock, value_of(X));
  CHECK(bench.said() == "took 0, granted>2");
  static_cast<void>(bench.locks[0].take());
  bench.epochs.on_notice(2, {.notice = Notice::unlock, .type = X, .value = 1});
  CHECK(bench.said() == "passed 0, unlocked>2");
}

TEST_CASE("a lock that another holds is asked for by name", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  bench.says_tickets = true;
  const auto other = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(other, X));
  REQUIRE(bench.epochs.lock(S, 1, false, &bench.event("granted")));
  CHECK(bench.said() == "took 1");
  bench.locks[1].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
}

TEST_CASE("a look notice serves tickets without a poll", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  const auto other = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(other, X));
  REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("granted")));
  bench.hear(1, Notice::look);
  CHECK(bench.said().empty());
  bench.locks[1].leave(X);
  bench.hear(1, Notice::look);
  CHECK(bench.said() == "granted");
}

TEST_CASE("this rank's own lock", "[epochs][lock]") {
  Bench bench(GENERATE(1, 2));
  REQUIRE(bench.epochs.lock(X, 0, false, &bench.event("granted")));
  bench.put(0, "a");
  CHECK(bench.said() == "granted, start a");
  REQUIRE(bench.epochs.unlock(0, &bench.event("ended")));
  bench.done("a");
  CHECK(bench.said() == "ended");
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("others ask for this rank's lock", "[epochs][lock]") {
  Bench bench;
  bench.hear(1, Notice::lock, value_of(S));
  bench.hear(2, Notice::lock, value_of(S));
  bench.hear(3, Notice::lock, value_of(X));
  bench.hear(1, Notice::lock, value_of(S));
  CHECK(bench.said() == "granted>1, granted>2");
  CHECK(bench.epochs.awaits_lock());
  bench.hear(2, Notice::unlock, 1);  // its type is shared
  CHECK(bench.said() == "unlocked>2");
  bench.hear(1, Notice::unlock, 1);
  CHECK(bench.said() == "unlocked>1, granted>3");
  bench.epochs.on_notice(3, {.notice = Notice::unlock, .type = X, .value = 1});
  CHECK(bench.said() == "unlocked>3, granted>1");
  CHECK_FALSE(bench.epochs.awaits_lock());
}

TEST_CASE("this rank and others stand in one queue", "[epochs][lock]") {
  Bench bench;
  bench.hear(1, Notice::lock, value_of(X));
  REQUIRE(bench.epochs.lock(X, 0, false, &bench.event("mine")));
  bench.hear(2, Notice::lock, value_of(X));
  CHECK(bench.said() == "granted>1");
  bench.epochs.on_notice(1, {.notice = Notice::unlock, .type = X, .value = 1});
  bench.epochs.poll();
  CHECK(bench.said() == "unlocked>1, mine");
  REQUIRE(bench.epochs.unlock(0, &bench.event("ended")));
  CHECK(bench.said() == "granted>2, ended");
}

TEST_CASE("a neighbour that maps the lock is seen by polling", "[epochs][lock]") {
  Bench bench;
  const auto neighbour = bench.locks[0].take();
  REQUIRE(bench.locks[0].try_enter(neighbour, X));
  bench.hear(1, Notice::lock, value_of(S));
  bench.epochs.poll();
  CHECK(bench.said().empty());
  bench.locks[0].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted>1");
}

TEST_CASE("lock_all asks when a rank is used first", "[epochs][lock]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
  CHECK(bench.said().empty());
  bench.put(1, "a");
  bench.put(1, "b");
  CHECK(bench.said() == "lock>1");
  CHECK(bench.sent.back().second.value == value_of(LockType::guest));
  bench.grant();
  CHECK(bench.said() == "start a, start b");
  bench.put(3, "c");
  CHECK(bench.said() == "lock>3");
  REQUIRE(bench.epochs.unlock_all(&bench.event("ended")));
  CHECK(bench.said() == "unlock>1");
  bench.unlocked();
  bench.grant();
  CHECK(bench.said() == "start c, unlock>3");
  bench.unlocked();
  CHECK(bench.said() == "ended");
}

TEST_CASE("lock_all asks for some at once", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  const auto other = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(other, X));
  REQUIRE(bench.epochs.lock_all(false, std::vector<Rank>{0, 1}, &bench.event("granted")));
  CHECK(bench.said().empty());
  bench.locks[1].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
  REQUIRE(bench.epochs.unlock_all(&bench.event("ended")));
  CHECK(bench.said() == "ended");
  CHECK(bench.locks[0].try_enter(bench.locks[0].take(), X));
  CHECK(bench.locks[1].try_enter(bench.locks[1].take(), X));
}

TEST_CASE("lock_all asks one after the other", "[epochs][lock]") {
  Bench bench;
  bench.mapped = {1, 2};
  for (const Rank each : {0, 1}) {
    const auto other = bench.locks[each].take();
    REQUIRE(bench.locks[each].try_enter(other, X));
  }
  REQUIRE(bench.epochs.lock_all(false, std::vector<Rank>{0, 1, 2}, &bench.event("granted")));
  bench.locks[1].leave(X);
  bench.epochs.poll();
  const auto passes = bench.locks[1].take();  // nobody stands there before 0 is entered
  CHECK(bench.locks[1].try_enter(passes, X));
  bench.locks[0].leave(X);
  bench.epochs.poll();
  CHECK(bench.said().empty());
  bench.locks[1].leave(X);
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
}

TEST_CASE("lock_all that does not wait asks all at once, and passes those that wait",
          "[epochs][lock]") {
  Bench bench;
  bench.mapped = {1, 2};
  bench.ends_at_once = true;
  const auto holder = bench.locks[0].take();
  REQUIRE(bench.locks[0].try_enter(holder, X));
  const auto waits = bench.locks[0].take();
  REQUIRE(bench.epochs.lock_all(false, std::vector<Rank>{0, 1}, &bench.event("granted"), false));
  bench.put(2, "a", false);
  bench.put(3, "b", false);
  CHECK(bench.said() == "start a, lock>3");
  bench.locks[0].leave(X);
  CHECK_FALSE(bench.locks[0].try_enter(waits, X));
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
}

TEST_CASE("a guest passes exclusive locks that wait, and keeps them out", "[epochs][lock]") {
  Bench bench;
  bench.mapped.insert(1);
  bench.ends_at_once = true;
  bench.says_tickets = true;
  const auto inside = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(inside, S));
  const auto waits = bench.locks[1].take();
  REQUIRE(bench.epochs.lock_all(false, only_0, nullptr));
  bench.put(1, "a", false);
  CHECK(bench.said() == "start a");
  bench.locks[1].leave(S);
  CHECK_FALSE(bench.locks[1].try_enter(waits, X));
  REQUIRE(bench.epochs.unlock_all(nullptr));
  CHECK(bench.said() == "passed 1");
  CHECK(bench.locks[1].try_enter(waits, X));
}

TEST_CASE("a guest waits for an exclusive one that is inside, and for no other", "[epochs][lock]") {
  Bench bench;
  bench.says_tickets = true;
  REQUIRE(bench.epochs.lock(X, 0, false, nullptr));
  bench.hear(1, Notice::lock, value_of(X));
  bench.hear(2, Notice::lock, value_of(LockType::guest));
  bench.hear(3, Notice::lock, value_of(LockType::guest));
  CHECK(bench.said() == "took 0");
  CHECK(bench.epochs.awaits_lock());
  REQUIRE(bench.epochs.unlock(0, nullptr));
  CHECK(bench.said() == "let guests in 0, passed 0, granted>2, granted>3");
  bench.epochs.on_notice(2, {.notice = Notice::unlock, .type = LockType::guest});
  CHECK(bench.said() == "passed 0");
  bench.epochs.on_notice(3, {.notice = Notice::unlock, .type = LockType::guest});
  CHECK(bench.said() == "passed 0, granted>1");
}

TEST_CASE("lock_all without a check", "[epochs][lock]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock_all(true, only_0, &bench.event("granted")));
  bench.put(1, "a");
  CHECK(bench.said() == "granted, start a");
  REQUIRE(bench.epochs.unlock_all(&bench.event("ended")));
  CHECK(bench.said() == "flush>1");
  bench.flushed();
  CHECK(bench.said() == "ended");
}

TEST_CASE("lock_all that asks for none is granted at once", "[epochs][lock]") {
  Bench bench;
  REQUIRE(bench.epochs.lock_all(false, {}, &bench.event("granted")));
  CHECK(bench.said() == "granted");
}
