// Messages that could have gone eagerly and are announced, because their sender waits anyway: no
// sender waits for a receive.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

Transport copying() {
  Transport transport;
  transport.copies_every = 1;
  return transport;
}

}  // namespace

TEST_CASE("Eager-sized: a posted receive reads it") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Receive& receive = pair.receive_small();
  Send& send = pair.send(SendMode::eager_sized, 2);
  CHECK_FALSE(send.complete);
  pair.settle();
  CHECK(got(receive, send));
  CHECK(pair.receiver().counters().unexpected_copied == 0);
  CHECK(at_sender(pair).rts_eager_sized == 1);
}

TEST_CASE("Eager-sized: a synchronous send waits for its receive, and is no late large one") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Send& send = pair.send(SendMode::eager_sized_sync, 2);
  pair.settle();
  CHECK_FALSE(send.complete);
  Receive& receive = pair.receive_small();
  pair.settle();
  CHECK(got(receive, send));
  const Counters& counters = pair.receiver().counters();
  CHECK(counters.unexpected_copied + counters.unexpected_pushed == 0);
  CHECK(counters.late_receives == 0);
  CHECK(at_sender(pair).rts_eager_sized == 1);
}

TEST_CASE("Eager-sized: two processes that both send first are both released") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Send& there = pair.send(SendMode::eager_sized, 2);
  Send& back = pair.receiver().isend(0, 5, 2, SendMode::eager_sized, 77);
  pair.settle();
  CHECK(there.complete);
  CHECK(back.complete);
  Receive& first = pair.receive_small();
  Receive& second = pair.sender().irecv(1, 5, 2, false);
  pair.settle();
  CHECK(got(first, there));
  CHECK(got(second, back));
}

TEST_CASE("Eager-sized: copied messages keep their place among the others") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Send& one = pair.eager();
  Send& two = pair.send(SendMode::eager_sized, 2);
  Send& three = pair.eager();
  pair.settle();
  for (Send* each : {&one, &two, &three}) {
    Receive& receive = pair.receive_small();
    pair.settle();
    CHECK(got(receive, *each));
  }
}

TEST_CASE("Eager-sized: where nothing copies at once it is pushed, and waits for no receive") {
  for (const bool reads : {true, false}) {
    Transport transport;
    transport.reads = reads;
    Pair pair(HazardPolicy::envelope_sequence, {}, transport);
    Send& there = pair.send(SendMode::eager_sized, 6);
    Send& back = pair.receiver().isend(0, 5, 2, SendMode::eager_sized, 77);
    pair.settle();
    CHECK(there.complete);
    CHECK(back.complete);
    CHECK(pair.receiver().counters().unexpected_copied == 0);
    Receive& receive = pair.receive_large();
    Receive& answer = pair.sender().irecv(1, 5, 2, false);
    pair.settle();
    CHECK(got(receive, there));
    CHECK(got(answer, back));
    CHECK(pair.receiver().protocol().open_handles() == 0);
  }
}

TEST_CASE("Eager-sized: a receive that comes while it is pushed gets it") {
  Pair pair(HazardPolicy::envelope_sequence);
  Send& send = pair.send(SendMode::eager_sized, 6);
  REQUIRE(pair.deliver(Kind::rts));
  REQUIRE(pair.deliver(Kind::grant));
  Receive& receive = pair.receive_large();
  CHECK_FALSE(receive.complete);
  pair.settle();
  CHECK(send.complete);
  CHECK(got(receive, send));
}

TEST_CASE("Eager-sized: its communicator is freed while it is pushed") {
  Pair pair(HazardPolicy::envelope_sequence);
  Send& send = pair.send(SendMode::eager_sized, 6);
  REQUIRE(pair.deliver(Kind::rts));
  pair.receiver().free_communicator();
  pair.settle();
  CHECK(send.complete);
}

TEST_CASE("Eager-sized: what the hazard control must answer is not taken out of its hands") {
  Pair pair(HazardPolicy::eager_flag, {}, copying());
  static_cast<void>(pair.receive_large());  // an RTR that the eager message wastes
  static_cast<void>(pair.eager());
  Send& send = pair.send(SendMode::eager_sized, 2);  // its RTS says stop
  pair.settle();
  Receive& receive = pair.receive_small();
  pair.settle();
  CHECK(got(receive, send));
}

TEST_CASE("Eager-sized: a matched probe finds it like any other") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Send& send = pair.send(SendMode::eager_sized, 2);
  pair.settle();
  Receive* receive = pair.receiver().improbe_and_receive(0, 5, 2);
  REQUIRE(receive != nullptr);
  pair.settle();
  CHECK(got(*receive, send));
}

// One copy instead of two: its receive is about to come.
TEST_CASE("Eager-sized: in a call that a receive is likely to follow it is left to that one") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  const bool matched = GENERATE(true, false);
  Send& send = pair.send(SendMode::eager_sized, 2);
  pair.receiver().expect_receive([&] {
    REQUIRE(pair.deliver(Kind::rts));
    pair.receiver().take_left();
  });
  CHECK(pair.receiver().protocol().has_left());
  Receive& receive = matched ? *pair.receiver().improbe_and_receive(0, 5, 2) : pair.receive_small();
  CHECK_FALSE(pair.receiver().protocol().has_left());
  CHECK_FALSE(pair.receiver().owes_turns());
  pair.receiver().take_left();
  pair.settle();
  CHECK(got(receive, send));
  CHECK(send.complete);
  CHECK(pair.receiver().counters().unexpected_copied == 0);
}

TEST_CASE("Eager-sized: without a receive it is taken in the next turn") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  const std::uint64_t& copied = pair.receiver().counters().unexpected_copied;
  Send& one = pair.send(SendMode::eager_sized, 2);
  Send& two = pair.send(SendMode::eager_sized, 2);
  Send& three = pair.send(SendMode::eager_sized, 2);
  const auto turn = [&] {
    REQUIRE(pair.deliver(Kind::rts));
    pair.receiver().take_left();
  };
  pair.receiver().expect_receive(turn);
  CHECK(copied == 0);
  pair.receiver().expect_receive(turn);
  CHECK(copied == 1);
  turn();
  CHECK(copied == 3);
  CHECK_FALSE(pair.receiver().protocol().has_left());
  CHECK_FALSE(pair.receiver().owes_turns());
  pair.settle();
  for (Send* each : {&one, &two, &three}) {
    CHECK(each->complete);
    Receive& receive = pair.receive_small();
    pair.settle();
    CHECK(got(receive, *each));
  }
}

// Its program may receive other messages first.
TEST_CASE("Eager-sized: a matched probe that holds its message lets its sender go on") {
  const bool copies = GENERATE(true, false);
  Pair pair(HazardPolicy::envelope_sequence, {}, copies ? copying() : Transport{});
  Send& send = pair.send(SendMode::eager_sized, 2);
  pair.receiver().expect_receive([&] { REQUIRE(pair.deliver(Kind::rts)); });
  Arrived* message = pair.receiver().improbe(0, 5);
  REQUIRE(message != nullptr);
  for (int turn = 0; turn < 2; ++turn) pair.receiver().take_left();
  pair.settle();
  CHECK(send.complete);
  Receive& receive = pair.receiver().imrecv(*message, 2);
  pair.settle();
  CHECK(got(receive, send));
  CHECK(pair.receiver().protocol().open_handles() == 0);
}

TEST_CASE("Eager-sized: what is found twice is taken") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  Send& send = pair.send(SendMode::eager_sized, 2);
  pair.receiver().expect_receive([&] { REQUIRE(pair.deliver(Kind::rts)); });
  for (const bool is_left : {true, false, false}) {
    pair.receiver().iprobe(0, 5);
    CHECK(pair.receiver().protocol().has_left() == is_left);
    CHECK(pair.receiver().owes_turns() == is_left);
  }
  CHECK(pair.receiver().counters().unexpected_copied == 1);
  pair.settle();
  CHECK(send.complete);
  Receive& receive = pair.receive_small();
  pair.settle();
  CHECK(got(receive, send));
}

TEST_CASE("Eager-sized: of many that come in one turn some are left") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  constexpr int count = 20, most = 16;
  std::vector<Send*> sends;
  for (int i = 0; i < count; ++i) sends.push_back(&pair.send(SendMode::eager_sized, 2));
  pair.receiver().expect_receive([&] {
    for (int i = 0; i < count; ++i) REQUIRE(pair.deliver(Kind::rts));
    pair.receiver().take_left();
  });
  CHECK(pair.receiver().counters().unexpected_copied == count - most);
  const auto receive = [&](int first, int end) {
    for (int i = first; i < end; ++i) {
      Receive& each = pair.receive_small();
      pair.settle();
      CHECK(got(each, *sends[static_cast<std::size_t>(i)]));
    }
  };
  receive(0, count / 2);
  CHECK(pair.receiver().counters().unexpected_copied == count - most);
  pair.receiver().take_left();
  CHECK(pair.receiver().counters().unexpected_copied == count - count / 2);
  receive(count / 2, count);
}

TEST_CASE("Eager-sized: its communicator is freed while it is left") {
  Pair pair(HazardPolicy::envelope_sequence, {}, copying());
  static_cast<void>(pair.send(SendMode::eager_sized, 2));
  pair.receiver().expect_receive([&] { REQUIRE(pair.deliver(Kind::rts)); });
  pair.receiver().free_communicator();
  CHECK_FALSE(pair.receiver().protocol().has_left());
  CHECK_FALSE(pair.receiver().owes_turns());
  pair.receiver().take_left();
}
