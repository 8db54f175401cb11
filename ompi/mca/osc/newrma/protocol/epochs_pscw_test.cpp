// Post, start, complete and wait.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {
using namespace overlap::newrma;
}

TEST_CASE("operations start with the post, in their order", "[epochs][pscw]") {
  Bench bench;
  REQUIRE(bench.epochs.start(both));
  bench.put(1, "a");
  bench.put(2, "b");
  bench.put(1, "c");
  CHECK(bench.said().empty());
  CHECK_FALSE(Epochs::is_open(*bench.epochs.access_to(1)));
  bench.hear(1, Notice::post);
  CHECK(bench.said() == "start a, start c");
  CHECK(Epochs::is_open(*bench.epochs.access_to(1)));
  bench.put(1, "d");
  CHECK(bench.said() == "start d");
  REQUIRE(bench.epochs.complete(&bench.event("ended")));
  bench.done("c");
  bench.done("d");
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "complete>1");
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "start b");
  bench.done("b");
  CHECK(bench.said() == "complete>2, ended");
}

TEST_CASE("the started group is that of the open access epoch", "[epochs][pscw]") {
  Bench bench(4, 0, {.access_after_access = true});
  CHECK(bench.epochs.started_group().empty());
  REQUIRE(bench.epochs.start(both));
  CHECK(std::ranges::equal(bench.epochs.started_group(), both));
  REQUIRE(bench.epochs.complete(nullptr));
  CHECK(bench.epochs.started_group().empty());  // it has not ended
  REQUIRE(bench.epochs.start(only_1));
  CHECK(std::ranges::equal(bench.epochs.started_group(), only_1));
}

TEST_CASE("an early post is counted", "[epochs][pscw]") {
  Bench bench;
  bench.ends_at_once = true;
  bench.hear(1, Notice::post);
  REQUIRE(bench.epochs.start(only_1));
  bench.put(1, "a");
  CHECK(bench.said() == "start a");
  REQUIRE(bench.epochs.complete(&bench.event("ended")));
  CHECK(bench.said() == "complete>1, ended");
}

TEST_CASE("posts are counted per rank when groups differ", "[epochs][pscw]") {
  Bench bench;
  bench.hear(3, Notice::post);  // for a later epoch
  bench.hear(3, Notice::post);
  REQUIRE(bench.epochs.start(both));
  bench.put(1, "a");
  bench.put(2, "b");
  CHECK(bench.said().empty());
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "start b");
  REQUIRE(bench.epochs.complete(&bench.event("first")));
  bench.done("b");
  CHECK(bench.said() == "complete>2");
  REQUIRE(bench.epochs.start(std::vector<Rank>{2, 3}));
  bench.put(3, "c");
  bench.put(2, "d");
  bench.hear(1, Notice::post);
  bench.ends_at_once = true;
  CHECK(bench.said() == "start a");
  bench.done("a");
  CHECK(bench.said() == "complete>1, first, start c");
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "start d");
}

TEST_CASE("completes are counted per rank when groups differ", "[epochs][pscw]") {
  Bench bench;
  REQUIRE(bench.epochs.post(both));
  CHECK(bench.said() == "post>1, post>2");
  REQUIRE(bench.epochs.wait(&bench.event("first")));
  bench.hear(2, Notice::complete);
  REQUIRE(bench.epochs.post(std::vector<Rank>{2, 3}));
  CHECK(bench.said().empty());  // deferred
  bench.hear(1, Notice::complete);
  CHECK(bench.said() == "first, post>2, post>3");
  REQUIRE(bench.epochs.wait(&bench.event("second")));
  bench.hear(3, Notice::complete);
  CHECK(bench.said().empty());
  bench.hear(2, Notice::complete);
  CHECK(bench.said() == "second");
}

TEST_CASE("start inside post and wait is not deferred", "[epochs][pscw]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.post(only_1));
  REQUIRE(bench.epochs.start(only_1));
  bench.put(1, "a");
  CHECK(bench.said() == "post>1");
  bench.hear(1, Notice::post);
  CHECK(bench.said() == "start a");
  SECTION("complete first") {
    REQUIRE(bench.epochs.complete(&bench.event("completed")));
    CHECK(bench.said() == "complete>1, completed");
    REQUIRE(bench.epochs.wait(&bench.event("waited")));
    bench.hear(1, Notice::complete);
    CHECK(bench.said() == "waited");
  }
  SECTION("wait first") {
    REQUIRE(bench.epochs.wait(&bench.event("waited")));
    bench.hear(1, Notice::complete);
    CHECK(bench.said() == "waited");
    REQUIRE(bench.epochs.complete(&bench.event("completed")));
    CHECK(bench.said() == "complete>1, completed");
  }
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("targets without an operation are told, too", "[epochs][pscw]") {
  Bench bench;
  REQUIRE(bench.epochs.start(both));
  REQUIRE(bench.epochs.complete(&bench.event("ended")));
  bench.hear(2, Notice::post);
  CHECK(bench.said() == "complete>2");
  bench.hear(1, Notice::post);
  CHECK(bench.said() == "complete>1, ended");
}

TEST_CASE("empty groups end at once", "[epochs][pscw]") {
  Bench bench;
  REQUIRE(bench.epochs.post({}));
  REQUIRE(bench.epochs.start({}));
  CHECK(bench.epochs.access_to(1) == nullptr);
  REQUIRE(bench.epochs.complete(&bench.event("completed")));
  REQUIRE(bench.epochs.wait(&bench.event("waited")));
  CHECK(bench.said() == "completed, waited");
}

TEST_CASE("test closes an exposure that is over", "[epochs][pscw]") {
  Bench bench;
  bool done = true;
  REQUIRE(bench.epochs.post(both));
  REQUIRE(bench.epochs.test(done));
  CHECK_FALSE(done);
  bench.hear(1, Notice::complete);
  REQUIRE(bench.epochs.test(done));
  CHECK_FALSE(done);
  CHECK_FALSE(bench.epochs.post(only_1));  // open as before
  bench.hear(2, Notice::complete);
  CHECK(bench.epochs.in_use());
  REQUIRE(bench.epochs.test(done));
  CHECK(done);
  CHECK_FALSE(bench.epochs.in_use());
  CHECK_FALSE(bench.epochs.test(done));
}

TEST_CASE("test of a deferred exposure", "[epochs][pscw]") {
  Bench bench;
  bool done = true;
  REQUIRE(bench.epochs.post(only_1));
  REQUIRE(bench.epochs.wait(nullptr));
  REQUIRE(bench.epochs.post(only_2));
  REQUIRE(bench.epochs.test(done));
  CHECK_FALSE(done);
  bench.hear(1, Notice::complete);
  bench.hear(2, Notice::complete);
  REQUIRE(bench.epochs.test(done));
  CHECK(done);
}

TEST_CASE("a rank exposes to itself", "[epochs][pscw]") {
  Bench bench(GENERATE(1, 3));
  REQUIRE(bench.epochs.post(only_0));
  REQUIRE(bench.epochs.start(only_0));
  bench.put(0, "a");
  CHECK(bench.said() == "start a");
  REQUIRE(bench.epochs.wait(&bench.event("waited")));
  REQUIRE(bench.epochs.complete(&bench.event("completed")));
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK((bench.said() == "waited, completed"));
}
