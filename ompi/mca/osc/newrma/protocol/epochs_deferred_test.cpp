// Epochs behind epochs that have not ended: program order and the permitted exceptions.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::newrma;
constexpr LockType X = LockType::exclusive;

constexpr Reorder all_of_them{true, true, true, true};

void closed_access(Bench& bench, Rank target) {
  REQUIRE(bench.epochs.start(std::vector<Rank>{target}));
  REQUIRE(bench.epochs.complete(&bench.event("completed " + std::to_string(target))));
}
void closed_exposure(Bench& bench, Rank origin) {
  REQUIRE(bench.epochs.post(std::vector<Rank>{origin}));
  REQUIRE(bench.epochs.wait(&bench.event("waited " + std::to_string(origin))));
}

}  // namespace

TEST_CASE("deferred epochs begin in program order", "[epochs][deferred]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  bench.put(1, "a");
  REQUIRE(bench.epochs.unlock(1, &bench.event("1")));
  REQUIRE(bench.epochs.start(only_2));
  bench.put(2, "b");
  REQUIRE(bench.epochs.complete(&bench.event("2")));
  REQUIRE(bench.epochs.post(only_1));
  REQUIRE(bench.epochs.wait(&bench.event("3")));
  REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
  bench.put(3, "d");
  REQUIRE(bench.epochs.unlock_all(&bench.event("4")));
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "lock>1");
  bench.grant();
  CHECK(bench.said() == "start a, unlock>1");
  bench.unlocked();
  CHECK(bench.said() == "1, start b, complete>2, 2, post>1");
  bench.hear(1, Notice::complete);
  CHECK(bench.said() == "3, lock>3");
  bench.grant();
  bench.unlocked();
  CHECK(bench.said() == "start d, unlock>3, 4");
}

TEST_CASE("operations of a deferred epoch that is still open", "[epochs][deferred]") {
  Bench bench;
  closed_exposure(bench, 1);
  REQUIRE(bench.epochs.lock(X, 2, false, &bench.event("granted")));
  bench.put(2, "a");
  REQUIRE(bench.epochs.flush(2, true, bench.event("flushed")));
  CHECK(bench.said() == "post>1");
  bench.hear(1, Notice::complete);
  CHECK(bench.said() == "waited 1, lock>2");
  bench.grant();
  CHECK(bench.said() == "granted, start a");
  bench.done("a");
  CHECK(bench.said() == "flushed");
}

TEST_CASE("each permission lets one kind pass another", "[epochs][deferred]") {
  for (unsigned bits = 0; bits < 16; ++bits) {
    CAPTURE(bits);
    const Reorder reorder{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    {
      Bench bench(4, 0, reorder);
      bench.hear(2, Notice::post);
      closed_access(bench, 1);
      closed_access(bench, 2);
      CHECK((bench.said() == "complete>2, completed 2") == reorder.access_after_access);
    }
    {
      Bench bench(4, 0, reorder);
      bench.hear(2, Notice::post);
      closed_exposure(bench, 1);
      closed_access(bench, 2);
      CHECK((bench.said() == "post>1, complete>2, completed 2") == reorder.access_after_exposure);
    }
    {
      Bench bench(4, 0, reorder);
      closed_exposure(bench, 1);
      closed_exposure(bench, 2);
      CHECK((bench.said() == "post>1, post>2") == reorder.exposure_after_exposure);
    }
    {
      Bench bench(4, 0, reorder);
      closed_access(bench, 1);
      closed_exposure(bench, 2);
      CHECK((bench.said() == "post>2") == reorder.exposure_after_access);
    }
    {
      Bench bench(4, 0, reorder);  // a lock is an access
      REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
      REQUIRE(bench.epochs.unlock(1, nullptr));
      REQUIRE(bench.epochs.lock(X, 2, false, nullptr));
      CHECK((bench.said() == "lock>1, lock>2") == reorder.access_after_access);
    }
  }
}

TEST_CASE("fences and lock_all pass nothing and are not passed", "[epochs][deferred]") {
  Bench bench(2, 0, all_of_them);
  SECTION("behind a fence") {
    REQUIRE(bench.epochs.fence(nullptr, false));
    CHECK(bench.said() == "fence>1");
    closed_exposure(bench, 1);
    closed_access(bench, 1);
    REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
    CHECK(bench.said().empty());
  }
  SECTION("a fence behind others") {
    closed_exposure(bench, 1);
    REQUIRE(bench.epochs.fence(nullptr, false));
    CHECK(bench.said() == "post>1");
    bench.hear(1, Notice::complete);
    CHECK(bench.said() == "waited 1, fence>1");
  }
  SECTION("behind lock_all") {
    REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
    bench.put(1, "a");
    REQUIRE(bench.epochs.unlock_all(nullptr));
    CHECK(bench.said() == "lock>1");
    closed_exposure(bench, 1);
    CHECK(bench.said().empty());
  }
  SECTION("lock_all behind others") {
    closed_access(bench, 1);
    REQUIRE(bench.epochs.lock_all(false, only_0, &bench.event("granted")));
    CHECK(bench.said().empty());
    bench.hear(1, Notice::post);
    CHECK(bench.said() == "complete>1, completed 1, granted");
  }
}

TEST_CASE("open epochs defer nothing but locks behind one that is waited for",
          "[epochs][deferred]") {
  Bench bench;
  REQUIRE(bench.epochs.post(only_1));
  REQUIRE(bench.epochs.lock(X, 2, false, nullptr));
  REQUIRE(bench.epochs.lock(X, 3, false, nullptr));
  CHECK(bench.said() == "post>1, lock>2");
  bench.grant();
  CHECK(bench.said() == "lock>3");
  REQUIRE(bench.epochs.unlock(2, nullptr));
  CHECK(bench.said() == "unlock>2");
  REQUIRE(bench.epochs.unlock(3, nullptr));
  REQUIRE(bench.epochs.start(only_1));
  REQUIRE(bench.epochs.complete(nullptr));
  bench.hear(1, Notice::post);
  CHECK(bench.said().empty());  // behind the locks
}

TEST_CASE("accesses that become active together ask in program order", "[epochs][deferred]") {
  Bench bench(2, 0, all_of_them);
  REQUIRE(bench.epochs.fence(nullptr, false));
  SECTION("posts") {
    REQUIRE(bench.epochs.start(only_1));
    bench.put(1, "a");
    REQUIRE(bench.epochs.complete(nullptr));
    REQUIRE(bench.epochs.start(only_1));
    bench.put(1, "b");
    bench.hear(1, Notice::fence);
    bench.hear(1, Notice::post);
    CHECK(bench.said() == "fence>1, start a");
  }
  SECTION("locks") {
    REQUIRE(bench.epochs.lock(LockType::shared, 1, false, nullptr));
    REQUIRE(bench.epochs.unlock(1, nullptr));
    REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
    bench.hear(1, Notice::fence);
    CHECK(bench.said() == "fence>1, lock>1, lock>1");
    CHECK(bench.sent[1].second.value == static_cast<std::uint64_t>(LockType::shared));
    CHECK(bench.sent[2].second.value == static_cast<std::uint64_t>(X));
  }
  SECTION("mapped locks") {
    bench.mapped.insert(1);
    REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("first")));
    bench.put(1, "a");
    REQUIRE(bench.epochs.unlock(1, nullptr));
    REQUIRE(bench.epochs.lock(X, 1, false, &bench.event("second")));
    bench.hear(1, Notice::fence);
    CHECK(bench.said() == "fence>1, first, start a");
  }
}

TEST_CASE("completes reach a target in program order", "[epochs][deferred]") {
  // It counts them: the second one in place of the first would end its first exposure.
  Bench bench(3, 0, all_of_them);
  bench.hear(1, Notice::post);
  bench.hear(1, Notice::post);
  REQUIRE(bench.epochs.start(only_1));
  bench.put(1, "a");
  REQUIRE(bench.epochs.complete(&bench.event("first")));
  REQUIRE(bench.epochs.start(both));
  bench.put(1, "b");
  REQUIRE(bench.epochs.complete(&bench.event("second")));
  CHECK(bench.said() == "start a, start b");
  bench.done("b");
  CHECK(bench.said().empty());
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "complete>2");
  bench.done("a");
  CHECK(bench.said() == "complete>1, complete>1, first, second");
}

TEST_CASE("deferred epochs that overlap begin together", "[epochs][deferred]") {
  Bench bench;
  REQUIRE(bench.epochs.lock(X, 1, false, nullptr));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  REQUIRE(bench.epochs.post(only_2));
  REQUIRE(bench.epochs.start(only_3));
  REQUIRE(bench.epochs.wait(&bench.event("waited")));
  bench.hear(3, Notice::post);
  REQUIRE(bench.epochs.complete(&bench.event("completed")));
  CHECK(bench.said() == "lock>1");
  bench.grant();
  CHECK(bench.said() == "unlock>1, post>2, complete>3, completed");
  bench.hear(2, Notice::complete);
  CHECK(bench.said() == "waited");
}
