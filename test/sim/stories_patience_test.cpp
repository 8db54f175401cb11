// Sends that wait a little for their RTR, message by message.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE("A send whose RTRs usually cross waits a little for the next one (P1.14)") {
  Pair pair(HazardPolicy::envelope_sequence);
  pair.clock_ns = 1000;
  for (int i = 0; i < 2; ++i) {
    Receive& receive = pair.receive_large(65536);
    Send& send = pair.rendezvous(65536);
    CHECK(send.state == SendState::waiting);
    pair.settle();
    CHECK(got(receive, send));
  }
  for (int i = 0; i < 100; ++i) {
    Receive& receive = pair.receive_large(65536);
    Send& send = pair.rendezvous(65536);
    CHECK(send.state == SendState::deferred);
    CHECK(pair.on_its_way(Kind::rts) == 0);
    pair.clock_ns += 3000;
    pair.sender().expire();
    CHECK(send.state == SendState::deferred);
    REQUIRE(pair.deliver(Kind::rtr));
    CHECK(send.state == SendState::writing);
    pair.settle();
    CHECK(got(receive, send));
  }
  CHECK(at_sender(pair).rtr_awaited == 100);
  CHECK(at_sender(pair).rtr_awaited_in_time == 100);
  CHECK(at_sender(pair).rtr_used == 100);
  CHECK(at_sender(pair).adaptation_stops == 0);
}

TEST_CASE("An RTS that the look of a receive finds counts as an RTR that has crossed it (P1.14)") {
  for (const bool reads : {true, false}) {
    Transport transport;
    transport.reads = reads;
    Pair pair(HazardPolicy::envelope_sequence, {}, transport);
    pair.clock_ns = 1000;
    for (int i = 0; i < 2; ++i) {
      Send& send = pair.rendezvous(65536);
      CHECK(send.state == SendState::waiting);
      REQUIRE(pair.deliver(Kind::rts));
      Receive& receive = pair.receiver().irecv(0, 5, 65536, true, true);
      pair.settle();
      CHECK(got(receive, send));
    }
    Send& send = pair.rendezvous(65536);
    CHECK(send.state == SendState::deferred);
    Receive& receive = pair.receive_large(65536);
    pair.settle();
    CHECK(got(receive, send));
    CHECK(at_sender(pair).rtr_used == 1);
  }
}

TEST_CASE("So does an RTS that waited for its receive no longer than a sender may wait (P1.14)") {
  const PatienceRules rules;
  for (const std::uint64_t waited_ns : {rules.wait_max_ns, rules.wait_max_ns + 1}) {
    Pair pair(HazardPolicy::envelope_sequence);
    pair.clock_ns = 1000;
    for (int i = 0; i < 2; ++i) {
      Send& send = pair.rendezvous(65536);
      REQUIRE(pair.deliver(Kind::rts));
      pair.clock_ns += waited_ns;
      Receive& receive = pair.receive_large(65536);
      pair.settle();
      CHECK(got(receive, send));
    }
    const bool deferred = pair.rendezvous(65536).state == SendState::deferred;
    CHECK(deferred == (waited_ns <= rules.wait_max_ns));
  }
}

TEST_CASE("A deferred send goes by RTS when its time is over or another send follows (P1.14)") {
  Config config;
  config.adaptation.enabled = false;
  Pair pair(HazardPolicy::envelope_sequence, config);
  pair.clock_ns = 1000;
  std::vector<std::pair<Receive*, Send*>> all;
  const auto next = [&]() -> Send& {
    Receive& receive = pair.receive_large(65536);
    Send& send = pair.rendezvous(65536);
    all.push_back({&receive, &send});
    return send;
  };
  while (next().state != SendState::deferred) pair.settle();
  pair.clock_ns += 50000;
  pair.sender().expire();
  CHECK(all.back().second->state == SendState::waiting);
  CHECK(at_sender(pair).rtr_awaited_in_time == 0);
  pair.settle();
  int until_next = 0;
  while (next().state != SendState::deferred) {
    ++until_next;
    pair.settle();
  }
  CHECK(until_next >= 3);  // it tries less often
  Send& follower = pair.send(SendMode::eager, 2, 6);
  CHECK(all.back().second->state == SendState::waiting);
  CHECK(pair.peek<RtsHeader>(Kind::rts).head.sequence + 1 ==
        pair.peek<SequencedHeader>(Kind::eager).sequence);
  Receive& behind = pair.receiver().irecv(0, 6, 2, false);
  pair.settle();
  CHECK(got(behind, follower));
  for (const auto& [receive, send] : all) {
    CHECK(got(*receive, *send));
    CHECK(send->complete);
  }
  CHECK_FALSE(pair.sender().protocol().has_deferred());
}

TEST_CASE("A synchronous send is not deferred: it might not use the RTR (P1.14)") {
  for (const SendMode mode : {SendMode::rendezvous, SendMode::rendezvous_sync}) {
    CAPTURE(mode == SendMode::rendezvous_sync);
    Pair pair(HazardPolicy::envelope_sequence);
    pair.clock_ns = 1000;
    for (int i = 0; i < 2; ++i) {
      pair.receive_large(65536);
      pair.rendezvous(65536);
      pair.settle();
    }
    Receive& receive = pair.receive_large(65536);
    Send& send = pair.send(mode, 65536);
    CHECK((send.state == SendState::deferred) == (mode == SendMode::rendezvous));
    pair.settle();
    CHECK(got(receive, send));
  }
}
