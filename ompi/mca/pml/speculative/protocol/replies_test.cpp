// Streams, round trips and exchanges, by their order of messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "replies.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

/// One process and what its peer has sent.
struct Pair {
  Replies replies;
  std::uint32_t arrived = 0;

  void arrive(std::uint32_t messages, bool read = false) {
    arrive_small(messages);
    for (std::uint32_t i = 0; i < messages; ++i) replies.note_message(read);
  }
  void arrive_small(std::uint32_t messages) { arrived += messages; }
  Replies::Place send() { return replies.note_send(arrived); }
  /// @returns  of so many sends in a row those with a turn
  int sends_with(SendTurn turn, int sends) {
    int found = 0;
    for (int i = 0; i < sends; ++i) found += send().turn == turn ? 1 : 0;
    return found;
  }
};

}  // namespace

TEST_CASE("Replies: who has heard nothing sends ahead") {
  Pair pair;
  CHECK(pair.sends_with(SendTurn::ahead, 100) == 100);
}

TEST_CASE("Replies: a stream with an answer now and then is alone once") {
  Pair pair;
  for (int window = 0; window < 10; ++window) {
    pair.arrive(1);
    CHECK(pair.send().turn == SendTurn::alone);
    CHECK(pair.sends_with(SendTurn::ahead, 63) == 63);
  }
}

TEST_CASE("Replies: messages by turns are alone, in round trips and in exchanges") {
  Pair pair;
  for (int round = 0; round < 100; ++round) {
    pair.arrive(1);
    const Replies::Place place = pair.send();
    CHECK(place.turn == SendTurn::alone);
    CHECK(place.first);
  }
}

TEST_CASE("Replies: several that answer several, and which is their first") {
  const int several = GENERATE(2, 3, 16, 64, 255);
  Pair pair;
  for (int round = 0; round < 10; ++round) {
    pair.arrive(static_cast<std::uint32_t>(several));
    for (int i = 0; i < several; ++i) {
      const Replies::Place place = pair.send();
      CHECK(place.turn == SendTurn::several);
      CHECK(place.first == (i == 0));
    }
    CHECK(pair.send().turn == SendTurn::ahead);
  }
}

TEST_CASE("Replies: what was never answered is forgotten within a few rounds") {
  Pair pair;
  pair.arrive(1000);
  int several = 0;
  for (int round = 0; round < 20; ++round) {
    pair.arrive(2);
    several += pair.sends_with(SendTurn::several, 4);
  }
  CHECK(several >= 20 * 2);
  CHECK(several <= 20 * 2 + 16);
}

TEST_CASE("Replies: half of what has not been answered yet is answered with the next messages") {
  Pair pair;
  pair.arrive(4);
  CHECK(pair.sends_with(SendTurn::several, 2) == 2);
  pair.arrive(1);
  const Replies::Place place = pair.send();
  CHECK(place.turn == SendTurn::several);
  CHECK(place.among == 2);
}

TEST_CASE("Replies: more messages than are counted are the most that are") {
  Pair pair;
  pair.arrive(256);
  CHECK(pair.send().among == 255);
}

TEST_CASE("Replies: behind the end of its first message nothing more goes an exchange's way") {
  Pair pair;
  pair.arrive(10);
  const Replies::Place first = pair.send();
  pair.replies.set_reads(true);
  CHECK(pair.sends_with(SendTurn::several, 2) == 2);
  CHECK(pair.replies.reads());
  CHECK(pair.replies.end_first(first) == 3);
  CHECK_FALSE(pair.replies.reads());
  SECTION("but the next exchange's is another one") {
    pair.arrive(10);
    static_cast<void>(pair.send());
    pair.replies.set_reads(true);
    CHECK(pair.replies.end_first(first) == 10);
    CHECK(pair.replies.reads());
  }
}

TEST_CASE("Replies: small messages are answered alone, and interrupt no exchange") {
  Pair pair;
  for (int round = 0; round < 10; ++round) {
    pair.arrive_small(4);
    CHECK(pair.send().turn == SendTurn::alone);
    CHECK(pair.send().turn == SendTurn::ahead);
  }
  for (int round = 0; round < 10; ++round) {
    pair.arrive(4);
    CHECK(pair.send().first);
    pair.arrive_small(3);
    const Replies::Place second = pair.send();
    CHECK(second.turn == SendTurn::several);
    CHECK_FALSE(second.first);
    CHECK(pair.sends_with(SendTurn::several, 2) == 2);
  }
}

TEST_CASE("Replies: who answers several with one is alone") {
  Pair pair;
  pair.arrive(4);
  CHECK(pair.send().turn == SendTurn::several);  // more may follow
  for (int round = 0; round < 10; ++round) {
    pair.arrive(4);
    const Replies::Place place = pair.send();
    CHECK(place.turn == SendTurn::alone);
    CHECK(place.among == 1);
  }
  pair.arrive(4);
  static_cast<void>(pair.send());
  static_cast<void>(pair.send());
  pair.arrive(4);
  CHECK(pair.send().turn == SendTurn::several);
}

TEST_CASE("Replies: an exchange is of its first message's way until the next one begins") {
  Pair pair;
  pair.arrive(3);
  static_cast<void>(pair.send());
  pair.replies.set_reads(true);
  static_cast<void>(pair.send());
  CHECK(pair.replies.reads());
  pair.arrive(3);
  static_cast<void>(pair.send());
  CHECK_FALSE(pair.replies.reads());
}

TEST_CASE("Replies: the count of the peer's messages wraps") {
  Pair pair;
  pair.arrive_small(UINT32_MAX - 1);
  static_cast<void>(pair.sends_with(SendTurn::several, 300));
  pair.arrive(3);
  CHECK(pair.sends_with(SendTurn::several, 3) == 3);
  CHECK(pair.send().turn == SendTurn::ahead);
}

TEST_CASE("Replies: an exchange knows how many it answers, and whether they were to be read") {
  Pair pair;
  pair.arrive(3, true);
  const Replies::Place first = pair.send();
  CHECK(first.to_reads);
  CHECK(first.among == 3);
  CHECK_FALSE(pair.send().to_reads);
  pair.arrive(1, true);
  pair.arrive(2);
  CHECK(pair.send().to_reads);
  pair.arrive(3);
  CHECK_FALSE(pair.send().to_reads);
}

TEST_CASE("Replies: who waits for each send does not exchange several") {
  Pair pair;
  pair.arrive(3);
  const Replies::Place first = pair.send().of_waiting();
  CHECK(first.turn == SendTurn::alone);
  CHECK(first.first);
  const Replies::Place second = pair.send().of_waiting();
  CHECK(second.turn == SendTurn::ahead);
  CHECK_FALSE(second.first);
  CHECK(pair.send().of_waiting().turn == SendTurn::ahead);
  pair.arrive(1);
  CHECK(pair.send().of_waiting().turn == SendTurn::alone);
  CHECK(pair.send().of_waiting().turn == SendTurn::ahead);
}
