// Cancelled receives, message by message.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE(
    "A cancelled receive keeps its buffer until the sender has confirmed; the receives behind it "
    "offer anew (P1.7)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Receive& first = pair.receive_large();
    Receive& second = pair.receive_large();
    pair.settle();
    pair.receiver().cancel(first);
    CHECK_FALSE(first.cancelled);
    REQUIRE(pair.deliver(Kind::revoke));
    CHECK(pair.sender().comm().peer(1).kept_rtrs == 0);
    REQUIRE(pair.deliver(Kind::revoke_ack));
    CHECK(first.cancelled);
    REQUIRE(pair.deliver(Kind::rtr));
    Send& send = pair.rendezvous();
    pair.settle();
    CHECK(got(second, send));
    CHECK(at_sender(pair).rtr_used == 1);
  }
}

TEST_CASE("A cancel that comes too late is matched: the RTR was in use already (P1.6)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Receive& receive = pair.receive_large();
    pair.settle();
    Send& send = pair.rendezvous();
    pair.receiver().cancel(receive);
    pair.settle();
    CHECK_FALSE(receive.cancelled);
    CHECK(got(receive, send));
    CHECK(pair.receiver().protocol().open_handles() == 0);
  }
}

TEST_CASE(
    "The first REVOKE-ACK voids every RTR that is out: the receive of a second cancel acknowledges "
    "its RTS (P1.6)") {
  Pair pair(HazardPolicy::eager_flag);
  Receive& first = pair.receive_large();
  Receive& second = pair.receive_large();
  Send& one = pair.rendezvous();
  pair.receiver().cancel(first);
  pair.receiver().cancel(second);
  REQUIRE(pair.deliver(Kind::rtr));
  REQUIRE(pair.deliver(Kind::rtr));
  REQUIRE(pair.deliver(Kind::revoke));
  Send& two = pair.rendezvous();
  Receive& third = pair.receive_large();
  pair.settle();
  CHECK(got(first, one));
  CHECK(second.cancelled);
  CHECK(got(third, two));
  CHECK(pair.sender().comm().peer(1).send_envelopes.find(5)->awaiting_rtrs == 0);
}

TEST_CASE("A receive can be cancelled after its envelope was forgotten (P1.7)") {
  Config small;
  small.envelopes.envelopes_max = 1;
  Pair pair(HazardPolicy::envelope_sequence, small);
  Receive& first = pair.receive_large(6, 5);
  Receive& second = pair.receive_large(6, 6);  // its envelope takes the place of the first one's
  pair.settle();
  pair.receiver().cancel(first);
  pair.receiver().cancel(second);
  pair.settle();
  CHECK(first.cancelled);
  CHECK(second.cancelled);
  CHECK(pair.receiver().protocol().open_handles() == 0);
}
