// The polling set: who joins, who leaves, in which order members are visited, and changes from
// within a visit.
// SPDX-License-Identifier: BSD-3-Clause
#include "polling_set.hpp"

#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

constexpr std::uint32_t none = PollingSet::none;

std::vector<std::uint32_t> visited(PollingSet& set, std::uint32_t busy = none) {
  std::vector<std::uint32_t> peers;
  set.for_each([&](std::uint32_t peer) {
    peers.push_back(peer);
    return peer == busy ? 1U : 0U;
  });
  return peers;
}
using Peers = std::vector<std::uint32_t>;

PollingSet with(std::uint32_t members, PollOrder order) {
  PollingSet set(members, SetPolicy::first, order, 100);
  for (std::uint32_t peer = 0; peer < members; ++peer) set.added(peer);
  return set;
}

/// Messages of one peer; does what the set asks for at once.
void send(PollingSet& set, std::uint32_t peer, int messages) {
  for (int i = 0; i < messages; ++i) {
    const PollingSet::Change change =
        set.on_message(peer, set.contains(peer) ? Channel::ring : Channel::send_receive);
    if (change.remove != none) set.removed(change.remove);
    if (change.add != none) set.added(change.add);
  }
}

}  // namespace

TEST_CASE("PollingSet: the first N that send are members (P2.6)") {
  PollingSet set(3, SetPolicy::first, PollOrder::sequential, 10);
  for (const std::uint32_t peer : {7U, 900U, 2U}) {
    const PollingSet::Change change = set.on_message(peer, Channel::send_receive);
    CHECK(change.add == peer);
    CHECK(change.remove == none);
    CHECK_FALSE(set.contains(peer));
    CHECK(set.on_message(peer, Channel::send_receive).add == none);  // asked already
    set.added(peer);
    CHECK(set.contains(peer));
  }
  for (int i = 0; i < 1000; ++i) {
    const PollingSet::Change change = set.on_message(5, Channel::send_receive);
    REQUIRE(change.add == none);
    REQUIRE(change.remove == none);
  }
  CHECK(set.size() == 3);
  CHECK_FALSE(set.contains(5));
  set.removed(900);
  CHECK_FALSE(set.contains(900));
  CHECK(set.on_message(5, Channel::send_receive).add == 5);  // there is room again
}

TEST_CASE("PollingSet: nobody joins an empty set (P2.6)") {
  PollingSet set(0, SetPolicy::traffic, PollOrder::recent, 1);
  for (std::uint32_t i = 0; i < 1000; ++i) {
    const PollingSet::Change change = set.on_message(i % 3, Channel::send_receive);
    REQUIRE(change.add == none);
    REQUIRE(change.remove == none);
  }
  CHECK(visited(set).empty());
}

TEST_CASE("PollingSet: a refused peer is asked again after a review (P2.7)") {
  PollingSet set(2, SetPolicy::first, PollOrder::sequential, 10);
  REQUIRE(set.on_message(1, Channel::send_receive).add == 1);
  set.refused(1);
  int asked = 0;
  int messages = 0;
  while (asked == 0 && messages < 100)
    ++messages, asked += set.on_message(1, Channel::send_receive).add == 1 ? 1 : 0;
  CHECK(messages == 10);
}

TEST_CASE("PollingSet: a peer that declines gives its place to another one (P2.7)") {
  PollingSet set(1, SetPolicy::first, PollOrder::sequential, 10);
  REQUIRE(set.on_message(1, Channel::send_receive).add == 1);
  set.added(1);
  set.removed(1);
  set.declined(1);
  CHECK(set.on_message(1, Channel::send_receive).add == none);
  REQUIRE(set.on_message(2, Channel::send_receive).add == 2);
  set.added(2);
  set.removed(2);
  // Its turn comes again after a review, like that of one for which there was no memory.
  int messages = 3;
  while (set.on_message(1, Channel::send_receive).add != 1 && messages < 100) ++messages;
  CHECK(messages == 10);
}

TEST_CASE("PollingSet: a newcomer needs twice the traffic of the weakest member (P2.6)") {
  for (const auto& [traffic, joins] :
       {std::pair{10, false}, std::pair{19, false}, std::pair{20, true}, std::pair{50, true}}) {
    CAPTURE(traffic);
    PollingSet set(2, SetPolicy::traffic, PollOrder::sequential, 1000);
    send(set, 0, 40);
    send(set, 1, 10);
    send(set, 2, traffic);
    send(set, 0, 1000 - 50 - traffic);  // up to the review
    CHECK(set.contains(2) == joins);
    CHECK(set.contains(1) == !joins);
    CHECK(set.contains(0));
  }
}

TEST_CASE("PollingSet: two peers of equal traffic do not take turns (P2.6)") {
  PollingSet set(1, SetPolicy::traffic, PollOrder::sequential, 64);
  send(set, 0, 1);
  for (int i = 0; i < 10000; ++i) {
    send(set, 0, 1);
    send(set, 1, 1);
    REQUIRE(set.contains(0));
  }
}

TEST_CASE("PollingSet: it follows a program that changes its partners (P2.6)") {
  PollingSet set(4, SetPolicy::traffic, PollOrder::recent, 256);
  for (std::uint32_t phase = 0; phase < 8; ++phase) {
    CAPTURE(phase);
    for (int i = 0; i < 4000; ++i) {
      for (std::uint32_t k = 0; k < 4; ++k) send(set, phase * 4 + k, 1);
      if (i % 50 == 0) send(set, 100, 1);  // a rare one
    }
    for (std::uint32_t k = 0; k < 4; ++k) CHECK(set.contains(phase * 4 + k));
    CHECK_FALSE(set.contains(100));
  }
}

TEST_CASE("PollingSet: one change at a time; who leaves is visited until it has gone (P2.6)") {
  PollingSet set(1, SetPolicy::traffic, PollOrder::sequential, 10);
  send(set, 0, 1);
  PollingSet::Change change;
  int messages = 0;
  while (change.remove == none && messages++ < 100)
    change = set.on_message(1, Channel::send_receive);
  REQUIRE(change.add == 1);
  REQUIRE(change.remove == 0);
  set.added(1);
  CHECK(set.contains(0));
  CHECK(visited(set) == Peers{0, 1});
  for (int i = 0; i < 1000; ++i) {
    const PollingSet::Change other = set.on_message(2, Channel::send_receive);
    REQUIRE(other.add == none);
    REQUIRE(other.remove == none);
  }
  set.removed(0);
  CHECK(visited(set) == Peers{1});
  messages = 0;
  while (change.add != 2 && messages++ < 100) change = set.on_message(2, Channel::send_receive);
  CHECK(change.add == 2);
  CHECK(change.remove == 1);
}

TEST_CASE("PollingSet: poll orders (P2.6)") {
  PollingSet sequential = with(4, PollOrder::sequential);
  CHECK(visited(sequential, 2) == Peers{0, 1, 2, 3});
  CHECK(visited(sequential) == Peers{0, 1, 2, 3});

  PollingSet circular = with(4, PollOrder::circular);
  CHECK(visited(circular) == Peers{0, 1, 2, 3});
  CHECK(visited(circular) == Peers{1, 2, 3, 0});
  CHECK(visited(circular) == Peers{2, 3, 0, 1});
  CHECK(visited(circular) == Peers{3, 0, 1, 2});
  CHECK(visited(circular) == Peers{0, 1, 2, 3});

  PollingSet recent = with(4, PollOrder::recent);
  CHECK(visited(recent, 2) == Peers{0, 1, 2, 3});
  CHECK(visited(recent, 3) == Peers{2, 0, 1, 3});
  CHECK(visited(recent, 2) == Peers{3, 2, 0, 1});
  CHECK(visited(recent) == Peers{2, 3, 0, 1});
}

TEST_CASE(
    "PollingSet: a member whose ring is known is visited only when something is there (P2.6)") {
  struct alignas(line_bytes) Slots {
    std::byte bytes[2 * line_bytes];
  } memory, sender_memory;
  ReceiveRing ring(memory.bytes, 2, line_bytes);
  SendRing sender(sender_memory.bytes, 2, line_bytes);
  PollingSet set(2, SetPolicy::first, PollOrder::sequential, 100);
  set.added(0, &ring);
  set.added(1);
  CHECK(visited(set) == Peers{1});
  for (int i = 0; i < 5; ++i) {
    const SendRing::Sealed sealed = sender.seal({});
    std::copy_n(sender.slot(sealed.slot), sealed.wire_bytes,
                memory.bytes + std::size_t{sealed.slot} * line_bytes);
    CHECK(visited(set) == Peers{0, 1});
    ReceiveRing::Arrival arrival{};
    REQUIRE(ring.peek(arrival));
    ring.advance();
    ring.free(arrival.slot);
    REQUIRE(sender.on_credits(ring.take_credits(1)));
    CHECK(visited(set) == Peers{1});
  }
}

TEST_CASE("PollingSet: seeded walk, changes from within visits and visits within visits (P2.6)") {
  for (const PollOrder order : {PollOrder::sequential, PollOrder::circular, PollOrder::recent}) {
    std::mt19937 random(11);
    PollingSet set(64, SetPolicy::first, order, 10);
    std::set<std::uint32_t> model;
    const auto change = [&] {
      const std::uint32_t peer = random() % 40;
      if (random() % 2) {
        set.added(peer);
        model.insert(peer);
      } else {
        set.removed(peer);
        model.erase(peer);
      }
    };
    std::uint64_t visits = 0;
    for (int i = 0; i < 20000; ++i) {
      change();
      int depth = 0;
      const auto visit = [&](std::uint32_t peer, auto& self) -> std::uint32_t {
        REQUIRE(model.count(peer) == 1);  // nobody is visited who is not a member
        ++visits;
        if (random() % 8 == 0) change();
        if (depth < 2 && random() % 16 == 0) {
          ++depth;
          set.for_each([&](std::uint32_t inner) { return self(inner, self); });
          --depth;
        }
        return random() % 4 == 0 ? 1 : 0;
      };
      set.for_each([&](std::uint32_t peer) { return visit(peer, visit); });
      REQUIRE(set.size() == model.size());
      // A pass that changes nothing visits each member once.
      const Peers all = visited(set);
      REQUIRE(std::set<std::uint32_t>(all.begin(), all.end()) == model);
      REQUIRE(all.size() == model.size());
    }
    CHECK(visits > 100000);
  }
}
