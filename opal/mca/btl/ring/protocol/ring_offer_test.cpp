// An offered ring: its story, every state with every event, and seeded walks.
// SPDX-License-Identifier: BSD-3-Clause
#include "ring_offer.hpp"

#include <array>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

using S = OfferState;
using E = OfferEvent;
using A = OfferAction;
constexpr std::array states{S::none, S::open, S::declined, S::refused};
constexpr std::array events{E::order_unknown, E::opened, E::declined, E::closed};

/// A cell of the table in ring_offer.hpp; illegal where nothing is written.
struct Cell {
  S next = S::none;
  A action = A::none;
  bool legal = false;
  Cell() = default;
  Cell(S state, A act = A::none) : next(state), action(act), legal(true) {}
};

Cell expected(S state, E event) {
  const Cell o;
  // [state][event], in the order of `states` and `events`
  const Cell table[4][4] = {
      {S::refused, S::open, S::none, o},
      {o, o, {S::declined, A::close_ring}, S::none},
      {o, o, S::declined, {S::none, A::note_declined}},
      {o, o, S::refused, o},
  };
  return table[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

}  // namespace

TEST_CASE("RingOffer: a ring that is declined is closed, and another one may be offered later") {
  RingOffer offer;
  REQUIRE(offer.may_open());
  CHECK(offer.take(E::opened) == A::none);
  CHECK(!offer.may_open());
  CHECK(offer.take(E::declined) == A::close_ring);
  CHECK(!offer.may_open());
  CHECK(offer.take(E::closed) == A::note_declined);
  CHECK(offer.may_open());
}

TEST_CASE("RingOffer: what the peer says late of an ended ring changes nothing") {
  RingOffer offer;
  offer.take(E::opened);
  CHECK(offer.take(E::closed) == A::none);
  CHECK(offer.take(E::declined) == A::none);
  CHECK(offer.may_open());
}

TEST_CASE("RingOffer: every state with every event") {
  for (const S state : states) {
    for (const E event : events) {
      CAPTURE(static_cast<int>(state), static_cast<int>(event));
      const OfferStep got = step(state, event);
      const Cell want = expected(state, event);
      CHECK(got.legal == want.legal);
      CHECK(got.next == (want.legal ? want.next : state));
      CHECK(got.action == want.action);
    }
  }
}

TEST_CASE("RingOffer: each ring is closed once, a refusal is for good") {
  std::mt19937 random(1);
  for (int walk = 0; walk < 2000; ++walk) {
    S state = S::none;
    int open = 0, asked = 0;
    for (int i = 0; i < 20; ++i) {
      const E event = events[random() % events.size()];
      const OfferStep next = step(state, event);
      if (state == S::refused) REQUIRE(next.next == S::refused);
      if (next.legal && event == E::opened) {
        ++open;
        asked = 0;
      }
      if (next.legal && event == E::closed) --open;
      if (next.action == A::close_ring) ++asked;
      REQUIRE(asked <= 1);
      if (next.action == A::note_declined) REQUIRE(asked == 1);
      state = next.next;
      REQUIRE(open == (state == S::open || state == S::declined ? 1 : 0));
    }
  }
}
