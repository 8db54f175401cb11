// Fences: the barrier, operations, what follows.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::newrma;

/// The first fence of four ranks, done.
void begin(Bench& bench) {
  REQUIRE(bench.epochs.fence(nullptr, true));
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  static_cast<void>(bench.said());
}

}  // namespace

TEST_CASE("a fence is a dissemination barrier", "[epochs][fence]") {
  Bench bench;
  REQUIRE(bench.epochs.fence(&bench.event("ended"), false));
  CHECK(bench.said() == "fence>1");
  bench.hear(2, Notice::fence, 1);  // a later round first
  CHECK(bench.said().empty());
  bench.hear(3, Notice::fence, 0);
  CHECK(bench.said() == "fence>2, ended");
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("a neighbour may be one fence ahead", "[epochs][fence]") {
  Bench bench(2);
  bench.hear(1, Notice::fence, 0);
  REQUIRE(bench.epochs.fence(&bench.event("first"), true));
  CHECK(bench.said() == "fence>1, first");
  REQUIRE(bench.epochs.fence(&bench.event("second"), true));
  CHECK(bench.said() == "fence>1");
  bench.hear(1, Notice::fence, 0);
  CHECK(bench.said() == "second");
}

TEST_CASE("five ranks need three rounds", "[epochs][fence]") {
  Bench bench(5, 3);
  REQUIRE(bench.epochs.fence(&bench.event("ended"), false));
  bench.hear(2, Notice::fence, 0);
  bench.hear(1, Notice::fence, 1);
  CHECK(bench.said() == "fence>4, fence>0, fence>2");
  bench.hear(4, Notice::fence, 2);
  CHECK(bench.said() == "ended");
}

TEST_CASE("one rank fences alone", "[epochs][fence]") {
  Bench bench(1);
  REQUIRE(bench.epochs.fence(&bench.event("first"), true));
  CHECK(bench.said() == "first");
  bench.put(0, "a");
  CHECK(bench.said() == "start a");
  REQUIRE(bench.epochs.fence(&bench.event("second"), true));
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "second");
}

TEST_CASE("operations wait for the barrier and the barrier for operations", "[epochs][fence]") {
  Bench bench;
  REQUIRE(bench.epochs.fence(&bench.event("first"), true));
  bench.put(1, "a");
  bench.get(2, "b");
  bench.put(0, "c");
  CHECK(bench.said() == "fence>1, start c");
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK(bench.said() == "fence>2, first, start a, start b");
  REQUIRE(bench.epochs.fence(&bench.event("second"), true));
  bench.done("b");  // fetched: nothing to confirm
  CHECK(bench.said().empty());
  bench.done("c");  // of this rank: confirmed at once
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "flush>1");
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK(bench.said().empty());
  bench.flushed();
  CHECK(bench.said() == "fence>1, fence>2, second");
}

TEST_CASE("own memory needs nobody else behind a fence that ends no access", "[epochs][fence]") {
  Bench bench;
  bench.ends_at_once = true;
  SECTION("the first one") { REQUIRE(bench.epochs.fence(nullptr, true)); }
  SECTION("a later one that says so") {
    begin(bench);
    REQUIRE(bench.epochs.fence(nullptr, true, true));
  }
  bench.put(1, "other's");
  bench.put(0, "own");
  CHECK(bench.said() == "fence>1, start own");
  REQUIRE(bench.epochs.fence(&bench.event("second"), false));
  CHECK(bench.said().empty());
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK(bench.said() == "fence>2, start other's, flush>1");
  bench.flushed();
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK(bench.said() == "fence>1, fence>2, second");
}

TEST_CASE("own memory waits for a fence that ends an access of others", "[epochs][fence]") {
  Bench bench(2);
  bench.ends_at_once = true;
  SECTION("the last one") {
    REQUIRE(bench.epochs.fence(nullptr, true));
    bench.hear(1, Notice::fence);
    REQUIRE(bench.epochs.fence(nullptr, true));
  }
  SECTION("the one before, which has not ended") {
    REQUIRE(bench.epochs.fence(nullptr, true));
    bench.hear(1, Notice::fence);
    REQUIRE(bench.epochs.fence(nullptr, false));
    REQUIRE(bench.epochs.fence(nullptr, true));
  }
  static_cast<void>(bench.said());
  bench.put(0, "own");
  CHECK(bench.said().empty());
  bench.hear(1, Notice::fence);
  CHECK(bench.said().starts_with("start own"));
}

TEST_CASE("a fence's epoch is open while it has operations", "[epochs][fence]") {
  Bench bench;
  begin(bench);
  CHECK_FALSE(bench.epochs.is_open());
  bench.put(1, "a");
  CHECK(bench.epochs.is_open());
  REQUIRE(bench.epochs.fence(nullptr, true));
  CHECK_FALSE(bench.epochs.is_open());
}

TEST_CASE("a fence without a next one ends the epoch", "[epochs][fence]") {
  Bench bench;
  REQUIRE(bench.epochs.fence(nullptr, false));
  CHECK(bench.epochs.access_to(1) == nullptr);
  REQUIRE(bench.epochs.fence(nullptr, true));
  CHECK(bench.epochs.access_to(1) != nullptr);
}

TEST_CASE("another kind of epoch drops an idle fence", "[epochs][fence]") {
  Bench bench;
  begin(bench);
  SECTION("lock") {
    REQUIRE(bench.epochs.lock(LockType::shared, 1, false, nullptr));
    CHECK(bench.said() == "lock>1");
    REQUIRE(bench.epochs.unlock(1, nullptr));
    bench.grant();
    bench.unlocked();
  }
  SECTION("lock_all") {
    REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
    REQUIRE(bench.epochs.unlock_all(&bench.event("ended")));
    CHECK(bench.said() == "ended");
  }
  SECTION("start") {
    REQUIRE(bench.epochs.start(only_1));
    bench.hear(1, Notice::post);
    REQUIRE(bench.epochs.complete(&bench.event("ended")));
    CHECK(bench.said() == "complete>1, ended");
  }
  SECTION("post") {
    REQUIRE(bench.epochs.post(only_1));
    CHECK(bench.said() == "post>1");
    REQUIRE(bench.epochs.wait(&bench.event("ended")));
    bench.hear(1, Notice::complete);
    CHECK(bench.said() == "ended");
  }
  CHECK(bench.epochs.access_to(1) == nullptr);
  CHECK_FALSE(bench.epochs.in_use());
  static_cast<void>(bench.said());
  CHECK(bench.epochs.is_behind_fence());  // others may have accessed this rank since
  REQUIRE(bench.epochs.fence(&bench.event("last"), false));
  CHECK_FALSE(bench.epochs.is_behind_fence());
  CHECK(bench.said() == "fence>1");
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  CHECK(bench.said() == "fence>2, last");
}

TEST_CASE("fences in a row end one by one", "[epochs][fence]") {
  Bench bench(2);
  REQUIRE(bench.epochs.fence(&bench.event("1"), true));
  bench.put(1, "a");
  REQUIRE(bench.epochs.fence(&bench.event("2"), true));
  bench.put(1, "b");
  REQUIRE(bench.epochs.fence(&bench.event("3"), false));
  CHECK(bench.said() == "fence>1");
  bench.ends_at_once = true;
  bench.hear(1, Notice::fence);
  CHECK(bench.said() == "1, start a, flush>1");
  bench.hear(1, Notice::fence);
  bench.hear(1, Notice::fence);
  CHECK(bench.said().empty());
  bench.flushed();
  CHECK(bench.said() == "fence>1, 2, start b, flush>1");
  bench.flushed();
  CHECK(bench.said() == "fence>1, 3");
}

TEST_CASE("asked ahead, a fence waits for no answer", "[epochs][fence]") {
  Bench bench;
  bench.ends_at_once = true;
  begin(bench);
  bench.put(3, "a");
  bench.epochs.ask_ahead();
  CHECK(bench.said() == "start a, flush>3");
  bench.flushed();
  REQUIRE(bench.epochs.fence(nullptr, false));
  CHECK(bench.said() == "fence>1");
}

TEST_CASE("what is opened behind a fence leaves the fence's exposure open", "[epochs][fence]") {
  Bench bench;
  CHECK_FALSE(bench.epochs.is_behind_fence());
  begin(bench);
  CHECK(bench.epochs.is_behind_fence());
  REQUIRE(bench.epochs.lock(LockType::shared, 1, false, nullptr));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  bench.grant();
  bench.unlocked();
  CHECK(bench.epochs.is_behind_fence());  // others may have accessed this rank's memory
  REQUIRE(bench.epochs.fence(nullptr, false));
  CHECK_FALSE(bench.epochs.is_behind_fence());
}
