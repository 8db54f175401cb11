// When RTRs go out, and what stops and restarts them.
// SPDX-License-Identifier: BSD-3-Clause
#include "offers.hpp"

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

RtsHeader rts(std::uint8_t flags = 0) {
  RtsHeader header{};
  header.head = {kind_version(Kind::rts), flags, 7, 1, Bench::tag, 0, 0};
  header.length_bytes = 1000;
  return header;
}

bool offered(const ReceiveOp& op) { return op.state == ReceiveState::offered; }

}  // namespace

TEST_CASE("Offers: a wildcard that could take the message first holds an RTR back", "[P1.7]") {
  Bench bench;
  ReceiveOp wildcard;
  ReceiveOp op;
  bench.post(wildcard, 100, any_source);
  bench.offer(op);
  CHECK_FALSE(offered(op));
  bench.comm.unpost(wildcard);
  bench.offers.offer_waiting(bench.peer, Bench::tag, false);
  CHECK(offered(op));
  CHECK(bench.counters.rtr_sent == 1);
  bench.comm.unpost(op);
}

TEST_CASE("Offers: a receive without RTR holds all later ones of its envelope back", "[P1.7]") {
  Config config;
  config.rtr_min_bytes = 50;
  Bench bench(config);
  ReceiveOp small;
  ReceiveOp large;
  bench.post(small, 49);
  bench.offers.try_offer(small);
  bench.offer(large);
  CHECK_FALSE(offered(small));
  CHECK_FALSE(offered(large));
  bench.offers.offer_waiting(bench.peer, Bench::tag, true);
  CHECK_FALSE(offered(large));
  bench.comm.unpost(small);
  bench.offers.offer_waiting(bench.peer, Bench::tag, false);
  CHECK(offered(large));
  bench.comm.unpost(large);
}

TEST_CASE("Offers: none to a peer that could not use it") {
  Bench bench;
  ReceiveOp op;
  bench.post(op);
  SECTION("its stream has not begun") { bench.peer.bound = unbound_incarnation; }
  SECTION("its stream has ended") { bench.peer.ended = true; }
  SECTION("it does not speculate") { bench.peer.speculates = false; }
  SECTION("the receive predicts an eager message") { op.speculate = false; }
  SECTION("a REVOKE is out") { bench.envelope().revokes_out = 1; }
  bench.offers.try_offer(op);
  CHECK_FALSE(offered(op));
  CHECK(bench.machine.open_handles() == 0);
  CHECK(bench.taken().empty());
  bench.comm.unpost(op);
}

TEST_CASE("Offers: eager messages in a row mute an envelope, an RTS wakes it", "[P1.9]") {
  Bench bench;
  for (std::uint32_t i = 1; i <= bench.config.mispredictions_max; ++i) {
    CHECK_FALSE(bench.envelope().muted);
    bench.offers.mispredicted(bench.peer, Bench::tag);
  }
  CHECK(bench.envelope().muted);
  CHECK(bench.counters.mutes == 1);
  bench.offers.mispredicted(bench.peer, Bench::tag);
  CHECK(bench.counters.mutes == 1);
  ReceiveOp op;
  bench.offer(op);
  CHECK_FALSE(offered(op));
  CHECK(bench.offers.rts_came(bench.peer, rts(), nullptr));
  bench.offers.offer_waiting(bench.peer, Bench::tag, true);
  CHECK(offered(op));
  CHECK_FALSE(bench.offers.rts_came(bench.peer, rts(), &op));  // it could before
  bench.comm.unpost(op);
}

TEST_CASE("Offers: an RTR that is used begins the count of mispredictions again", "[P1.9]") {
  Bench bench;
  for (std::uint32_t i = 1; i < 3 * bench.config.mispredictions_max; ++i) {
    bench.offers.mispredicted(bench.peer, Bench::tag);
    if (i % 2 == 0) static_cast<void>(bench.offers.used(bench.peer, Bench::tag));
  }
  CHECK(bench.counters.mutes == 0);
}

TEST_CASE("Offers: stop-RTR takes every RTR back, resume-RTR sends them again", "[P1.8]") {
  Config config;
  config.hazard_policy = HazardPolicy::eager_flag;
  Bench bench(config);
  ReceiveOp first;
  ReceiveOp second;
  bench.offer(first);
  bench.offer(second);
  bench.envelope().orphaned_rtrs = 3;
  CHECK_FALSE(bench.offers.rts_came(bench.peer, rts(flag::hazard_stop), nullptr));
  CHECK(first.state == ReceiveState::queued);
  CHECK(second.state == ReceiveState::queued);
  CHECK(bench.envelope().orphaned_rtrs == 0);
  bench.offers.offer_waiting(bench.peer, Bench::tag, true);
  CHECK_FALSE(offered(first));
  CHECK(bench.offers.rts_came(bench.peer, rts(flag::hazard_resume), nullptr));
  bench.offers.offer_waiting(bench.peer, Bench::tag, true);
  CHECK(offered(first));
  CHECK(offered(second));
  CHECK(bench.counters.rtr_sent == 4);
  for (ReceiveOp* op : {&first, &second}) bench.comm.unpost(*op);
}

TEST_CASE("Offers: a match is acknowledged where the sender counts RTRs", "[P1.6]") {
  Config config;
  config.hazard_policy = HazardPolicy::eager_flag;
  SECTION("no RTR is out for it") {
    Bench bench(config);
    Arrived& message = bench.unexpected.make(bench.peer, Bench::tag, Kind::rts, 1000, 0);
    message.hazard_epoch = 9;
    bench.offers.acknowledge_match(message, false);
    const std::vector<Action> actions = bench.taken();
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].message.kind() == Kind::rts_ack);
    CHECK(bench.counters.rts_ack_sent == 1);
    Arrived::destroy(&message);
  }
  SECTION("without speculation, on either side") {
    for (const bool mine : {false, true}) {
      config.speculation = mine;
      Bench bench(config);
      bench.peer.speculates = !mine;
      Arrived& message = bench.unexpected.make(bench.peer, Bench::tag, Kind::rts, 1000, 0);
      bench.offers.acknowledge_match(message, false);
      CHECK(bench.taken().empty());
      Arrived::destroy(&message);
    }
  }
}
