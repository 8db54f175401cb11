// Which sends wait a little for an RTR, and when each is taken out again.
// SPDX-License-Identifier: BSD-3-Clause
#include "deferred_sends.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

/// A process that has sent an envelope of each of three peers twice too late for their RTRs.
struct Sender {
  Sender() {
    for (std::int32_t rank = 0; rank < 3; ++rank) {
      ops[rank].peer = &comm.peer(rank);
      ops[rank].tag = tag;
      ops[rank].length_bytes = 1 << 20;
      envelope(rank).patience.crossed();
      envelope(rank).patience.crossed();
    }
    deferred.heard(1000);
  }
  SendEnvelope& envelope(std::int32_t rank) {
    return *comm.peer(rank).send_envelopes.get(tag, EnvelopeBound{});
  }

  static constexpr std::int32_t tag = 5;
  Communicator comm{7, 3, 4, 1};
  SendOp ops[3];
  PatienceRules rules;
  Counters counters;
  DeferredSends deferred{rules, counters};
};

}  // namespace

TEST_CASE("DeferredSends: a send waits where an RTR may still come for it (P1.14)") {
  Sender sender;
  SendOp& op = sender.ops[0];
  SECTION("after RTRs that have crossed") {
    CHECK(sender.deferred.try_put(op));
    CHECK(op.peer->defers);
    CHECK(op.decide_ns == 1000 + sender.rules.wait_max_ns);
    CHECK(sender.counters.rtr_awaited == 1);
    return;
  }
  SECTION("not in an envelope that is new") { op.tag = 6; }
  SECTION("not once the peer has freed the communicator") { op.peer->ended = true; }
  SECTION("not once its speculation has stopped") { sender.envelope(0).adaptation.stopped = true; }
  SECTION("not with an RTR at hand") { sender.envelope(0).kept.push_back({}); }
  SECTION("not when it might not use one") { op.synchronous = true; }
  CHECK_FALSE(sender.deferred.try_put(op));
  CHECK(sender.deferred.empty());
  CHECK_FALSE(op.peer->defers);
  CHECK(sender.counters.rtr_awaited == 0);
}

TEST_CASE("DeferredSends: what is not in time goes when its time is over, in order (P1.14)") {
  Sender sender;
  sender.ops[1].length_bytes = 2000;  // waits no longer than it would take itself
  for (SendOp& op : sender.ops) REQUIRE(sender.deferred.try_put(op));
  CHECK(sender.deferred.take_expired() == nullptr);
  sender.deferred.heard(3000);
  CHECK(sender.deferred.take_expired() == &sender.ops[1]);
  CHECK(sender.deferred.take_expired() == nullptr);
  CHECK_FALSE(sender.ops[1].peer->defers);
  CHECK(sender.envelope(1).patience.crossings == 0);  // it has waited in vain
  CHECK(sender.envelope(0).patience.crossings == 2);
  sender.deferred.heard(1000 + sender.rules.wait_max_ns);
  CHECK(sender.deferred.take_expired() == &sender.ops[0]);
  CHECK(sender.deferred.take_expired() == &sender.ops[2]);
  CHECK(sender.deferred.empty());
  CHECK(sender.counters.rtr_awaited_in_time == 0);
}

TEST_CASE("DeferredSends: the next message to a peer takes its send out before the time (P1.14)") {
  Sender sender;
  for (SendOp& op : sender.ops) REQUIRE(sender.deferred.try_put(op));
  CHECK(sender.deferred.take(sender.comm.peer(3)) == nullptr);
  CHECK(sender.deferred.take(sender.comm.peer(2)) == &sender.ops[2]);
  CHECK(sender.envelope(2).patience.crossings == 2);  // it has not waited as long as it might
  CHECK(sender.deferred.take(sender.comm.peer(2)) == nullptr);
}

TEST_CASE("DeferredSends: an RTR takes out the send of its envelope (P1.14)") {
  Sender sender;
  REQUIRE(sender.deferred.try_put(sender.ops[0]));
  sender.deferred.heard(5000);
  Peer& peer = sender.comm.peer(0);
  SendEnvelope& other = *peer.send_envelopes.get(6, EnvelopeBound{});
  other.kept.push_back({});
  CHECK(sender.deferred.take_met(peer, other) == nullptr);
  // One that was too late for its message is not kept.
  CHECK(sender.deferred.take_met(peer, sender.envelope(0)) == nullptr);
  CHECK(sender.envelope(0).patience.crossings == 3);
  sender.envelope(0).kept.push_back({});
  CHECK(sender.deferred.take_met(peer, sender.envelope(0)) == &sender.ops[0]);
  CHECK(sender.envelope(0).patience.took_ns == 4000);
  CHECK(sender.counters.rtr_awaited_in_time == 1);
  CHECK(sender.deferred.take_met(peer, sender.envelope(0)) == nullptr);
}
