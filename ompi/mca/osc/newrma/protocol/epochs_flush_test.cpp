// Flushes: what they cover and when they ask.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/epochs_bench.hpp"
#include "test/support/catch.hpp"

namespace {

using namespace overlap::newrma;

/// A lock of rank 1, granted.
void lock_1(Bench& bench) {
  REQUIRE(bench.epochs.lock(LockType::shared, 1, false, nullptr));
  bench.grant();
  static_cast<void>(bench.said());
}

}  // namespace

TEST_CASE("a flush covers what was issued before it", "[epochs][flush]") {
  Bench bench;
  lock_1(bench);
  bench.put(1, "a");
  bench.put(1, "b");
  REQUIRE(bench.epochs.flush(1, false, bench.event("flushed")));
  bench.put(1, "c");
  CHECK(bench.said() == "start a, start b, start c");
  bench.done("b");
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "flush>1");  // c is under way
  bench.flushed();
  CHECK(bench.said() == "flushed");
  REQUIRE(bench.epochs.flush(1, false, bench.event("again")));
  bench.done("c");
  CHECK(bench.said() == "flush>1");
  bench.flushed();
  CHECK(bench.said() == "again");
}

TEST_CASE("a local flush asks nobody", "[epochs][flush]") {
  Bench bench;
  lock_1(bench);
  bench.put(1, "a");
  REQUIRE(bench.epochs.flush(1, true, bench.event("local")));
  REQUIRE(bench.epochs.flush(1, false, bench.event("remote")));
  CHECK(bench.said() == "start a");
  bench.done("a");
  CHECK(bench.said() == "local, flush>1");
  bench.flushed();
  CHECK(bench.said() == "remote");
}

TEST_CASE("a flush of what was only fetched or is known asks nobody", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.get(1, "a");
  REQUIRE(bench.epochs.flush(1, false, bench.event("1")));
  CHECK(bench.said() == "start a, 1");
  bench.put(1, "b");
  REQUIRE(bench.epochs.flush(1, false, bench.event("2")));
  bench.flushed();
  CHECK(bench.said() == "start b, flush>1, 2");
  bench.get(1, "c");
  REQUIRE(bench.epochs.flush(1, false, bench.event("3")));
  CHECK(bench.said() == "start c, 3");
}

TEST_CASE("a write that has gone by itself is flushed and unlocked like others",
          "[epochs][flush]") {
  Bench bench;
  lock_1(bench);
  bench.epochs.add_sent_write(*bench.epochs.access_to(1));
  REQUIRE(bench.epochs.flush(1, true, bench.event("local")));
  CHECK(bench.said() == "local");
  REQUIRE(bench.epochs.flush(1, false, bench.event("1")));
  bench.epochs.add_sent_write(*bench.epochs.access_to(1));  // behind the question
  bench.flushed();
  CHECK(bench.said() == "flush>1, 1");
  REQUIRE(bench.epochs.flush(1, false, bench.event("2")));
  CHECK(bench.said() == "flush>1");
  bench.flushed();
  CHECK(bench.said() == "2");
}

TEST_CASE("a fence asks where a write has gone by itself", "[epochs][flush]") {
  Bench bench(4);
  REQUIRE(bench.epochs.fence(nullptr, true));
  bench.hear(3, Notice::fence, 0);
  bench.hear(2, Notice::fence, 1);
  static_cast<void>(bench.said());
  Access* const access = bench.epochs.access_to(1);
  REQUIRE(access != nullptr);
  REQUIRE(Epochs::is_open(*access));
  bench.epochs.add_sent_write(*access);
  REQUIRE(bench.epochs.fence(&bench.event("ended"), false));
  CHECK(bench.said() == "flush>1");
  bench.flushed();
  CHECK(bench.said() == "fence>1");
}

TEST_CASE("flushes share a question", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.put(1, "a");
  REQUIRE(bench.epochs.flush(1, false, bench.event("1")));
  REQUIRE(bench.epochs.flush(1, false, bench.event("2")));
  CHECK(bench.said() == "start a, flush>1");
  bench.flushed();
  CHECK(bench.said() == "1, 2");
}

TEST_CASE("an answer to an older question does not end a newer flush", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.put(1, "a");
  REQUIRE(bench.epochs.flush(1, false, bench.event("1")));
  const auto [to, question] = bench.sent.back();
  bench.put(1, "b");
  REQUIRE(bench.epochs.flush(1, false, bench.event("2")));
  CHECK(bench.said() == "start a, flush>1, start b, flush>1");
  bench.epochs.on_notice(to,
                         {.notice = Notice::flushed, .id = question.id, .value = question.value});
  CHECK(bench.said() == "1");
  bench.flushed();
  CHECK(bench.said() == "2");
}

TEST_CASE("is_flushed: nothing is left for a flush of that rank", "[epochs][flush]") {
  Bench bench;
  const auto is_flushed = [&bench](Rank target) { return bench.epochs.is_flushed(target); };
  CHECK_FALSE(is_flushed(1));  // no epoch: an error
  lock_1(bench);
  CHECK_FALSE(is_flushed(1));  // nobody has looked for it yet
  bench.get(1, "a");
  CHECK_FALSE(is_flushed(1));
  bench.done("a");
  CHECK(is_flushed(1));
  CHECK_FALSE(is_flushed(2));
  bench.put(1, "b");
  bench.done("b");
  CHECK_FALSE(is_flushed(1));
  REQUIRE(bench.epochs.flush(1, false, bench.event("flushed")));
  CHECK_FALSE(is_flushed(1));
  bench.flushed();
  CHECK(is_flushed(1));
  bench.put(1, "c");
  bench.done("c");
  bench.epochs.ask_ahead();
  bench.flushed();
  CHECK_FALSE(is_flushed(1));  // a flush notes that the question was of use
  REQUIRE(bench.epochs.flush(1, false, bench.event("noted")));
  CHECK(is_flushed(1));
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK_FALSE(is_flushed(1));
}

TEST_CASE("is_flushed: only of epochs of locks", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  bench.hear(1, Notice::post);
  REQUIRE(bench.epochs.start(std::vector<Rank>{1}));
  bench.get(1, "a");
  CHECK_FALSE(bench.epochs.is_flushed(1));
}

TEST_CASE("a flush before the grant waits for it", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.lock(LockType::shared, 1, false, nullptr));
  bench.put(1, "a");
  REQUIRE(bench.epochs.flush(1, true, bench.event("local")));
  CHECK(bench.said() == "lock>1");
  bench.grant();
  CHECK(bench.said() == "start a, local");
}

TEST_CASE("the unlock waits for the flush", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.put(1, "a");
  REQUIRE(bench.epochs.flush(1, false, bench.event("flushed")));
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  CHECK(bench.said() == "start a, flush>1");
  bench.flushed();
  CHECK(bench.said() == "flushed, unlock>1, ended");
}

TEST_CASE("asked ahead, the unlock waits for no answer", "[epochs][flush]") {
  Bench bench;
  lock_1(bench);
  bench.put(1, "a");
  CHECK_FALSE(bench.epochs.has_unasked());
  bench.done("a");
  CHECK(bench.epochs.has_unasked());
  bench.epochs.ask_ahead();
  CHECK_FALSE(bench.epochs.has_unasked());
  bench.epochs.ask_ahead();
  CHECK(bench.said() == "start a, flush>1");
  SECTION("answered before") {
    bench.flushed();
    REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
    CHECK(bench.said() == "unlock>1, ended");
  }
  SECTION("answered behind the unlock") {
    REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
    CHECK(bench.said() == "unlock>1");
    bench.flushed();
    CHECK(bench.said() == "ended");
  }
  CHECK_FALSE(asks_for_answer(bench.sent.back().second));
  CHECK_FALSE(bench.epochs.in_use());
}

TEST_CASE("what has been written since is asked for again", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.put(1, "a");
  bench.epochs.ask_ahead();
  bench.put(1, "b");
  REQUIRE(bench.epochs.unlock(1, &bench.event("ended")));
  CHECK(asks_for_answer(bench.sent.back().second));
  bench.flushed();
  CHECK(bench.said() == "start a, flush>1, start b, unlock>1");
  bench.unlocked();
  CHECK(bench.said() == "ended");
}

TEST_CASE("both answers come inside a send, while epochs are looked through", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  REQUIRE(bench.epochs.post(only_2));
  lock_1(bench);
  bench.put(1, "a");
  bench.epochs.ask_ahead();
  bench.put(1, "b");
  REQUIRE(bench.epochs.wait(&bench.event("waited")));
  REQUIRE(bench.epochs.post(only_2));  // behind the first
  REQUIRE(bench.epochs.unlock(1, &bench.event("unlocked")));
  static_cast<void>(bench.said());
  bench.inside_send = [&bench] {
    bench.flushed();
    bench.unlocked();
  };
  bench.hear(2, Notice::complete);
  CHECK(bench.said() == "waited, post>2, unlocked");
}

TEST_CASE("who writes on behind questions is asked ever more rarely", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  const auto questions = [&bench](int puts) {
    const std::size_t before = bench.sent.size();
    for (int i = 0; i < puts; ++i) {
      bench.put(1, "a");
      bench.epochs.ask_ahead();
    }
    return bench.sent.size() - before;
  };
  CHECK(questions(2000) < 20);
  // One that has saved a wait brings them back.
  while (questions(1) == 0) continue;
  bench.flushed();
  REQUIRE(bench.epochs.flush(1, false, bench.event("flushed")));
  CHECK(questions(1) == 1);
}

TEST_CASE("an unlock that asks leaves nothing to ask ahead", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  lock_1(bench);
  bench.put(1, "a");
  REQUIRE(bench.epochs.unlock(1, nullptr));
  CHECK_FALSE(bench.epochs.has_unasked());
}

TEST_CASE("flush_all asks nobody again", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  for (const Rank target : both) {
    REQUIRE(bench.epochs.lock(LockType::shared, target, false, nullptr));
    bench.grant();
    bench.put(target, "a");
  }
  bench.epochs.ask_ahead();
  static_cast<void>(bench.said());
  REQUIRE(bench.epochs.flush_all(false, bench.event("flushed")));
  CHECK(bench.said().empty());
}

TEST_CASE("nobody is asked ahead without need", "[epochs][flush]") {
  Bench bench;
  SECTION("operations are under way") {
    lock_1(bench);
    bench.put(1, "a");
    bench.done("a");
    bench.put(1, "b");
    CHECK_FALSE(bench.epochs.has_unasked());
    bench.done("b");
    bench.epochs.ask_ahead();
    CHECK(bench.said() == "start a, start b, flush>1");
  }
  SECTION("what was fetched is here") {
    lock_1(bench);
    bench.get(1, "a");
    bench.done("a");
    CHECK_FALSE(bench.epochs.has_unasked());
  }
  SECTION("a flush has asked") {
    lock_1(bench);
    bench.put(1, "a");
    bench.done("a");
    REQUIRE(bench.epochs.flush(1, false, bench.event("flushed")));
    CHECK_FALSE(bench.epochs.has_unasked());
  }
  SECTION("the target waits for complete") {
    bench.hear(1, Notice::post);
    REQUIRE(bench.epochs.start(only_1));
    bench.put(1, "a");
    bench.done("a");
    CHECK_FALSE(bench.epochs.has_unasked());
  }
  SECTION("the epoch has ended") {
    lock_1(bench);
    bench.put(1, "a");
    bench.done("a");
    REQUIRE(bench.epochs.unlock(1, nullptr));
    bench.unlocked();
    CHECK_FALSE(bench.epochs.has_unasked());
  }
}

TEST_CASE("flush_all with nothing to flush happens at once", "[epochs][flush]") {
  Bench bench;
  REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
  REQUIRE(bench.epochs.flush_all(false, bench.event("all")));
  CHECK(bench.said() == "all");
  CHECK(bench.events.back().times == 1);
}

TEST_CASE("flush_all waits for every rank", "[epochs][flush]") {
  Bench bench;
  const bool by_lock_all = GENERATE(false, true);
  if (by_lock_all) {
    REQUIRE(bench.epochs.lock_all(false, {}, nullptr));
  } else {
    for (const Rank target : both)
      REQUIRE(bench.epochs.lock(LockType::shared, target, false, nullptr));
  }
  bench.put(1, "a");
  bench.grant();  // of what asked last: rank 1 with lock_all, rank 2 otherwise
  bench.put(2, "b");
  for (std::size_t i = 0, asked = bench.sent.size(); i < asked; ++i)
    bench.epochs.on_notice(bench.sent[i].first,
                           {.notice = Notice::granted, .id = bench.sent[i].second.id});
  static_cast<void>(bench.said());
  REQUIRE(bench.epochs.flush_all(true, bench.event("local")));
  REQUIRE(bench.epochs.flush_all(false, bench.event("all")));
  bench.done("b");
  CHECK(bench.said() == "flush>2");
  bench.flushed();
  CHECK(bench.said().empty());
  bench.done("a");
  CHECK(bench.said() == "local, flush>1");
  bench.flushed();
  CHECK(bench.said() == "all");
}

TEST_CASE("a flush of this rank itself", "[epochs][flush]") {
  Bench bench;
  REQUIRE(bench.epochs.lock(LockType::exclusive, 0, false, nullptr));
  bench.put(0, "a");
  REQUIRE(bench.epochs.flush(0, false, bench.event("flushed")));
  CHECK(bench.said() == "start a");
  bench.done("a");
  CHECK(bench.said() == "flushed");
}

TEST_CASE("questions of others are answered", "[epochs][flush]") {
  Bench bench;
  bench.epochs.on_notice(2, {.notice = Notice::flush, .id = 7, .value = 9});
  CHECK(bench.said() == "flushed>2");
  CHECK(bench.sent.back().second.id == 7);
  CHECK(bench.sent.back().second.value == 9);
}

TEST_CASE("a late answer is nobody's", "[epochs][flush]") {
  Bench bench;
  bench.epochs.on_notice(2, {.notice = Notice::flushed, .id = 7, .value = 9});
  bench.epochs.on_notice(2, {.notice = Notice::granted, .id = 7});
  bench.epochs.on_notice(2, {.notice = Notice::unlocked, .id = 7});
  CHECK(bench.said().empty());
}

TEST_CASE("a flush of nothing does not wait for the lock", "[epochs][flush]") {
  Bench bench;
  bench.ends_at_once = true;
  const bool local = GENERATE(false, true);
  SECTION("lock") {
    REQUIRE(bench.epochs.lock(LockType::exclusive, 1, false, nullptr));
    REQUIRE(bench.epochs.flush(1, local, bench.event("one")));
    REQUIRE(bench.epochs.flush_all(local, bench.event("all")));
    CHECK(bench.said() == "lock>1, one, all");
  }
  SECTION("lock_all: nor asks for one") {
    REQUIRE(bench.epochs.lock_all(false, only_1, nullptr));
    REQUIRE(bench.epochs.flush(1, local, bench.event("one")));
    REQUIRE(bench.epochs.flush(2, local, bench.event("two")));
    REQUIRE(bench.epochs.flush_all(local, bench.event("all")));
    CHECK(bench.said() == "lock>1, one, two, all");
  }
}
