// When processes count as answering each other, and which way their messages go then.
// SPDX-License-Identifier: BSD-3-Clause
#include "turns.hpp"

#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

const int processes[2] = {};
const Turns::Process partner = &processes[0], other = &processes[1];
constexpr std::uint64_t bytes = 16384;

/// What a round takes by each way, in ns.
struct Machine {
  std::uint64_t read_ns;
  std::uint64_t eager_ns;
};

/// A process that answers: receives and sends by turns.
struct Answering {
  Turns turns;
  std::uint64_t now_ns = 1;
  int looks = 0;  ///< at the clock

  CopyWay round(const Machine& machine, std::uint64_t size_bytes = bytes) {
    if (!turns.answers(partner)) {
      turns.received(partner, 0);
      return CopyWay::fragments;
    }
    const CopyWay way = turns.choose(size_bytes);
    const bool timed = turns.is_timed();
    if (timed) turns.started(now_ns);
    now_ns += way == CopyWay::read ? machine.read_ns : machine.eager_ns;
    turns.received(partner, timed ? now_ns : 0);
    looks += timed ? 1 : 0;
    return way;
  }
  int read_of(int rounds, const Machine& machine, std::uint64_t size_bytes = bytes) {
    int read = 0;
    for (int i = 0; i < rounds; ++i) read += round(machine, size_bytes) == CopyWay::read ? 1 : 0;
    return read;
  }
};

}  // namespace

TEST_CASE("Turns: a send is an answer when a whole round has been seen") {
  Turns turns;
  CHECK_FALSE(turns.answers(partner));
  turns.received(partner, 0);
  CHECK_FALSE(turns.answers(partner));
  turns.received(partner, 0);
  CHECK(turns.answers(partner));
  turns.received(partner, 0);
  CHECK(turns.answers(partner));
}

TEST_CASE("Turns: what does not alternate starts anew") {
  Turns turns;
  const auto alternate = [&turns] {
    turns.received(partner, 0);
    static_cast<void>(turns.answers(partner));
    turns.received(partner, 0);
  };
  alternate();
  SECTION("two sends in a row") {
    CHECK(turns.answers(partner));
    CHECK_FALSE(turns.answers(partner));
    turns.received(partner, 0);
    CHECK_FALSE(turns.answers(partner));
  }
  SECTION("two receives in a row") {
    turns.received(partner, 0);
    CHECK_FALSE(turns.answers(partner));
  }
  SECTION("a send to another process") {
    CHECK_FALSE(turns.answers(other));
    CHECK_FALSE(turns.answers(partner));
  }
  SECTION("a receive from another process") {
    turns.received(other, 0);
    CHECK_FALSE(turns.answers(partner));
  }
  SECTION("processes that are answered one after the other") {
    for (int i = 0; i < 10; ++i) {
      for (const Turns::Process process : {partner, other}) {
        turns.received(process, 0);
        CHECK_FALSE(turns.answers(process));
      }
    }
  }
}

TEST_CASE("Turns: sends alone, and exchanges with a receive posted beforehand, are no answers") {
  Turns turns;
  for (int i = 0; i < 100; ++i) CHECK_FALSE(turns.answers(partner));
}

TEST_CASE("Turns: answers go the way that has been faster") {
  Answering side;
  SECTION("read") {
    const Machine machine{4000, 7000};
    side.read_of(26, machine);
    CHECK(side.read_of(1000, machine) >= 980);
  }
  SECTION("eagerly") {
    const Machine machine{9000, 7000};
    side.read_of(26, machine);
    const int read = side.read_of(1000, machine);
    CHECK(read <= 20);
    CHECK(read > 0);  // tried again now and then
  }
}

TEST_CASE("Turns: each size has its own way") {
  Answering side;
  for (int i = 0; i < 30; ++i) {
    side.read_of(1, {5000, 3000}, 8191);
    side.read_of(1, {5000, 7000}, 8192);
    side.read_of(1, {9000, 7000}, 32768);
  }
  CHECK(side.read_of(15, {5000, 3000}, 8191) <= 1);
  CHECK(side.read_of(15, {5000, 7000}, 8192) >= 14);
  CHECK(side.read_of(15, {9000, 7000}, 32768) <= 1);
}

TEST_CASE("Turns: a machine that changes is noticed") {
  Answering side;
  side.read_of(300, {4000, 7000});
  side.read_of(60, {20000, 7000});
  CHECK(side.read_of(300, {20000, 7000}) <= 10);
}

TEST_CASE("Turns: the clock is looked at in one round of four") {
  Answering side;
  side.read_of(1002, {4000, 7000});
  CHECK(side.looks == 250);
}

TEST_CASE("Turns: a way that is slow when it has not been used for a while is not misjudged") {
  Answering side;
  CopyWay last = CopyWay::fragments;
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t cold_ns = last == CopyWay::read ? 0 : 6000;
    last = side.round({4000 + cold_ns, 5500});
    read += last == CopyWay::read ? 1 : 0;
  }
  CHECK(read >= 1950);
}

TEST_CASE("Turns: a round that another process breaks is not measured") {
  Answering side;
  side.read_of(100, {4000, 7000});
  for (int i = 0; i < 100; ++i) {
    if (side.turns.answers(partner)) {
      static_cast<void>(side.turns.choose(bytes));
      side.turns.started(side.now_ns);
    }
    side.now_ns += 1'000'000;
    side.turns.received(other, side.now_ns);
    CHECK_FALSE(side.turns.is_timed());
    side.turns.received(partner, 0);
  }
  CHECK(side.read_of(100, {4000, 7000}) >= 90);
}
