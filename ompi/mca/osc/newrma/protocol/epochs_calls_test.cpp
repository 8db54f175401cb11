// Which calls are allowed in which state; the others change nothing.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

namespace {

using namespace overlap::newrma;

struct Call {
  const char* name;
  std::function<bool(Bench&)> make;
};

const std::vector<Call> calls{
    {"fence", [](Bench& b) { return b.epochs.fence(nullptr, true); }},
    {"start", [](Bench& b) { return b.epochs.start(only_1); }},
    {"complete", [](Bench& b) { return b.epochs.complete(&b.event("complete")); }},
    {"post", [](Bench& b) { return b.epochs.post(only_1); }},
    {"wait", [](Bench& b) { return b.epochs.wait(&b.event("wait")); }},
    {"test",
     [](Bench& b) {
       bool done = false;
       return b.epochs.test(done);
     }},
    {"lock 1",
     [](Bench& b) { return b.epochs.lock(LockType::shared, 1, false, &b.event("lock 1")); }},
    {"lock 2", [](Bench& b) { return b.epochs.lock(LockType::shared, 2, false, nullptr); }},
    {"unlock 1", [](Bench& b) { return b.epochs.unlock(1, &b.event("unlock 1")); }},
    {"unlock 2", [](Bench& b) { return b.epochs.unlock(2, nullptr); }},
    {"lock_all", [](Bench& b) { return b.epochs.lock_all(false, only_0, &b.event("lock_all")); }},
    {"unlock_all", [](Bench& b) { return b.epochs.unlock_all(nullptr); }},
    {"flush 1", [](Bench& b) { return b.epochs.flush(1, false, b.event("flush 1")); }},
    {"flush 2", [](Bench& b) { return b.epochs.flush(2, true, b.event("flush 2")); }},
    {"flush_all", [](Bench& b) { return b.epochs.flush_all(false, b.event("flush_all")); }},
    {"access 1", [](Bench& b) { return b.epochs.access_to(1) != nullptr; }},
    {"access 2", [](Bench& b) { return b.epochs.access_to(2) != nullptr; }},
};

struct Row {
  const char* name;
  std::function<void(Bench&)> prepare;
  /// One letter per call: fence start complete post wait test, lock unlock of 1 and 2, lock_all
  /// unlock_all, flush of 1 and 2, flush_all, access to 1 and 2.
  const char* allowed;
};

void begin_fence(Bench& b) { REQUIRE(b.epochs.fence(nullptr, true)); }

const std::vector<Row> rows{
    {"nothing", [](Bench&) {}, "y y n y n n  y y n n  y n  n n n  n n"},
    {"fence without another one", [](Bench& b) { REQUIRE(b.epochs.fence(nullptr, false)); },
     "y y n y n n  y y n n  y n  n n n  n n"},
    {"idle fence", begin_fence, "y y n y n n  y y n n  y n  n n n  y y"},
    {"fence in use",
     [](Bench& b) {
       begin_fence(b);
       b.put(3, "a");
     },
     "y n n n n n  n n n n  n n  n n n  y y"},
    {"access", [](Bench& b) { REQUIRE(b.epochs.start(only_1)); },
     "n n y y n n  n n n n  n n  n n n  y n"},
    {"exposure", [](Bench& b) { REQUIRE(b.epochs.post(only_1)); },
     "n y n n y y  y y n n  y n  n n n  n n"},
    {"access inside exposure",
     [](Bench& b) {
       REQUIRE(b.epochs.post(only_2));
       REQUIRE(b.epochs.start(only_1));
     },
     "n n y n y y  n n n n  n n  n n n  y n"},
    {"lock", [](Bench& b) { REQUIRE(b.epochs.lock(LockType::shared, 1, false, nullptr)); },
     "n n n y n n  n y y n  n n  y n y  y n"},
    {"lock that was free",
     [](Bench& b) {
       b.mapped.insert(1);
       REQUIRE(b.epochs.lock(LockType::shared, 1, false, nullptr));
       REQUIRE(b.epochs.has_entered(1));
     },
     "n n n y n n  n y y n  n n  y n y  y n"},
    {"lock inside exposure",
     [](Bench& b) {
       REQUIRE(b.epochs.post(only_2));
       REQUIRE(b.epochs.lock(LockType::exclusive, 1, false, nullptr));
     },
     "n n n n y y  n y y n  n n  y n y  y n"},
    {"lock_all", [](Bench& b) { REQUIRE(b.epochs.lock_all(false, {}, nullptr)); },
     "n n n y n n  n n n n  n y  y y y  y y"},
    {"lock_all that was free",
     [](Bench& b) {
       b.mapped = {1, 3};
       REQUIRE(b.epochs.lock_all(false, std::vector<Rank>{0, 1, 3}, nullptr));
       REQUIRE(b.epochs.has_entered(1));
     },
     "n n n y n n  n n n n  n y  y y y  y y"},
    {"lock_all without a check", [](Bench& b) { REQUIRE(b.epochs.lock_all(true, {}, nullptr)); },
     "n n n y n n  n n n n  n y  y y y  y y"},
    {"behind a lock that has not ended",
     [](Bench& b) {
       REQUIRE(b.epochs.lock(LockType::shared, 1, false, nullptr));
       REQUIRE(b.epochs.unlock(1, nullptr));
     },
     "y y n y n n  y y n n  y n  n n n  n n"},
    {"deferred access",
     [](Bench& b) {
       REQUIRE(b.epochs.lock(LockType::shared, 1, false, nullptr));
       REQUIRE(b.epochs.unlock(1, nullptr));
       REQUIRE(b.epochs.start(only_1));
     },
     "n n y y n n  n n n n  n n  n n n  y n"},
};

std::unique_ptr<Bench> bench_in(const Row& row) {
  auto bench = std::make_unique<Bench>();
  row.prepare(*bench);
  static_cast<void>(bench->said());
  return bench;
}

std::vector<bool> allowed_in(const Row& row) {
  std::vector<bool> answers;
  for (const char* c = row.allowed; *c != '\0'; ++c)
    if (*c != ' ') answers.push_back(*c == 'y');
  REQUIRE(answers.size() == calls.size());
  return answers;
}

}  // namespace

TEST_CASE("every call in every state", "[epochs]") {
  for (const Row& row : rows) {
    const std::vector<bool> allowed = allowed_in(row);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      CAPTURE(row.name, calls[i].name);
      CHECK(calls[i].make(*bench_in(row)) == allowed[i]);
    }
  }
}

TEST_CASE("what is refused changes nothing", "[epochs]") {
  for (const Row& row : rows) {
    const std::vector<bool> allowed = allowed_in(row);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      if (allowed[i]) continue;
      for (std::size_t j = 0; j < calls.size(); ++j) {
        CAPTURE(row.name, calls[i].name, calls[j].name);
        const auto untouched = bench_in(row);
        const auto bench = bench_in(row);
        CHECK_FALSE(calls[i].make(*bench));
        CHECK(bench->said().empty());
        for (const auto& event : bench->events) CHECK(event.pending == 0);
        CHECK(bench->epochs.in_use() == untouched->epochs.in_use());
        CHECK(bench->epochs.in_passive_epoch() == untouched->epochs.in_passive_epoch());
        CHECK(bench->epochs.awaits_lock() == untouched->epochs.awaits_lock());
        CHECK(calls[j].make(*bench) == allowed[j]);
        CHECK(calls[j].make(*untouched) == allowed[j]);
        CHECK(bench->said() == untouched->said());
      }
    }
  }
}

TEST_CASE("in_use tells of epochs that have not ended", "[epochs]") {
  Bench bench;
  CHECK_FALSE(bench.epochs.in_use());
  REQUIRE(bench.epochs.fence(nullptr, true));
  CHECK(bench.epochs.in_use());  // the barrier
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK_FALSE(bench.epochs.in_use());  // an idle one behind it
  bench.put(1, "a");
  CHECK(bench.epochs.in_use());
}

TEST_CASE("memory that runs out while operations start ends the process", "[epochs]") {
  Bench bench(2);
  bench.is_out_of_memory = true;
  REQUIRE(bench.epochs.lock(LockType::shared, 1, true, nullptr));
  CHECK_THROWS_AS(bench.put(1, "a"), Bench::Ended);
}

TEST_CASE("a call that returns without its lock lets the program run ahead", "[epochs]") {
  Bench bench;
  const bool early = GENERATE(true, false);
  const std::size_t& ahead = bench.locks_of_all.ahead;
  const auto lock = [&](Rank target, bool returns_early = true) {
    return bench.epochs.lock(LockType::exclusive, target, false, nullptr, returns_early);
  };
  REQUIRE(lock(1, early));
  CHECK(ahead == (early ? 1 : 0));
  CHECK_FALSE(bench.epochs.is_behind_others());
  Bench other;
  CHECK(Epochs(other, bench.locks_of_all, 0, 4, {}).is_behind_others() == early);
  SECTION("until it is there") {
    bench.grant();
    CHECK(ahead == 0);
    REQUIRE(bench.epochs.unlock(1, nullptr));
  }
  SECTION("until it is there, given back or not") {
    REQUIRE(bench.epochs.unlock(1, nullptr));
    CHECK(ahead == (early ? 1 : 0));
    bench.grant();
  }
  SECTION("or as long as one of two is missing") {
    REQUIRE(lock(2));
    bench.grant();
    CHECK(ahead == 1);
    bench.grant();
    CHECK(ahead == 0);
  }
  SECTION("and behind an epoch that has not ended, too") {
    REQUIRE(bench.epochs.unlock(1, nullptr));
    REQUIRE(lock(1));
    CHECK(ahead == (early ? 2 : 1));
    bench.grant();
    CHECK(ahead == 1);
    bench.grant();
  }
  CHECK(ahead == 0);
}

TEST_CASE("a lock of all runs ahead with each rank that it asks for", "[epochs]") {
  const bool waits = GENERATE(true, false);
  const bool enters = GENERATE(true, false);
  Bench bench;
  const std::size_t& ahead = bench.locks_of_all.ahead;
  bench.mapped = {1};
  if (enters && waits)
    REQUIRE(bench.epochs.try_lock_all(only_1));
  else
    REQUIRE(bench.epochs.lock_all(!enters, only_1, &bench.event("granted"), waits));
  CHECK(ahead == 0);
  bench.put(2, "a");
  CHECK(ahead == (waits && enters ? 1 : 0));  // else it needs no lock
  bench.grant();
  CHECK(ahead == 0);
}

TEST_CASE("a lock of all that is not free runs ahead with what it asks for later, too",
          "[epochs]") {
  const bool waits = GENERATE(true, false);
  Bench bench;
  const std::size_t& ahead = bench.locks_of_all.ahead;
  bench.mapped = {1};
  const auto inside = bench.locks[1].take();
  REQUIRE(bench.locks[1].try_enter(inside, LockType::exclusive));
  REQUIRE(bench.epochs.lock_all(false, only_1, &bench.event("granted"), waits));
  static_cast<void>(bench.locks[1].leave(LockType::exclusive));
  bench.epochs.poll();
  CHECK(bench.said() == "granted");
  CHECK(ahead == 0);
  bench.put(2, "a");
  CHECK(ahead == (waits ? 1 : 0));
  bench.grant();
  CHECK(ahead == 0);
}

TEST_CASE("what ends with its locks leaves none behind", "[epochs]") {
  ProcessLocks locks;
  Bench bench;
  bench.mapped = {3};
  {
    Epochs epochs(bench, locks, 0, 4, {});
    REQUIRE(epochs.lock(LockType::exclusive, 1, false, nullptr, true));
    REQUIRE(epochs.lock(LockType::shared, 3, false, nullptr, true));
    CHECK(locks.held == 2);
    CHECK(locks.ahead == 2);
    Epochs entered(bench, locks, 0, 4, {});
    REQUIRE(entered.try_lock(LockType::shared, 3));
    CHECK(locks.held == 3);
  }
  CHECK(locks.held == 0);
  CHECK(locks.ahead == 0);
}
