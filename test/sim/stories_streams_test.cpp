// Messages of a freed communicator, and of the next one with its context.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

/// Take the oldest message of this kind off the network, to be delivered by hand later.
Message intercept(Pair& pair, Kind kind) {
  const auto taken = pair.take(kind);
  REQUIRE(taken.has_value());
  return *taken;
}

/// Both processes free their communicator and make the next one with the same context.
void use_context_again(Pair& pair) {
  for (int rank = 0; rank < 2; ++rank) pair.process(rank).free_communicator();
  pair.settle();
  for (int rank = 0; rank < 2; ++rank) pair.process(rank).agree();
  pair.settle();
  for (int rank = 0; rank < 2; ++rank) pair.process(rank).activate();
  pair.settle();
  REQUIRE(pair.sender().agreed());
  REQUIRE(pair.receiver().agreed());
}

}  // namespace

TEST_CASE("A late RTR of a freed communicator means nothing to the next one with its context") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy, {}, {}, false);
    pair.eager();
    pair.receive_small();  // gets it, and with it the sender's incarnation
    pair.settle();
    Receive& open = pair.receive_large();
    const Message late = intercept(pair, Kind::rtr);
    pair.sender().free_communicator();
    REQUIRE(pair.deliver(Kind::stream_end));
    pair.receiver().cancel(open);  // local now
    CHECK(open.cancelled);
    CHECK(pair.quiet());
    pair.receiver().free_communicator();
    for (int rank = 0; rank < 2; ++rank) pair.process(rank).agree();
    pair.settle();
    for (int rank = 0; rank < 2; ++rank) pair.process(rank).activate();
    pair.settle();
    pair.sender().deliver(late);
    CHECK(at_sender(pair).stale_dropped == 1);
    Send& send = pair.rendezvous();
    CHECK(pair.on_its_way(Kind::rts) == 1);
    Receive& receive = pair.receive_large();
    pair.settle();
    CHECK(got(receive, send));
  }
}

TEST_CASE("A late message of a freed communicator is not received in the next one") {
  // The sender has made more communicators of its own than the receiver, or fewer.
  for (const HazardPolicy policy : both_policies) {
    for (const bool bound : {false, true}) {
      Pair pair(policy, {}, {}, false);
      if (bound) {
        pair.eager();
        pair.receive_small();
        pair.settle();
      }
      pair.eager();  // nobody receives it
      const Message late = intercept(pair, Kind::eager);
      use_context_again(pair);
      pair.receiver().deliver(late);
      CHECK(at_receiver(pair).stale_dropped >= 1);
      CHECK(pair.receiver().comm().unexpected_count == 0);
      Send& send = pair.eager();
      Receive& receive = pair.receive_small();
      pair.settle();
      CHECK(got(receive, send));
    }
  }
}
