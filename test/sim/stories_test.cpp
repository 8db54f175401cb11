// The scenarios of the paper's figures, message by message.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

TEST_CASE(
    "Fig. 7 case 1, Fig. 8 case 1: the RTR-ACK lets the second RTS go to the second receive "
    "(P1.6)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Receive& first = pair.receive_large();
    REQUIRE(pair.deliver(Kind::rtr));
    Receive& second = pair.receive_large();
    Send& one = pair.rendezvous();  // finds the RTR
    Send& two = pair.rendezvous();  // its RTR is still on its way
    CHECK(pair.on_its_way(Kind::rtr_ack) == 1);
    CHECK(pair.on_its_way(Kind::rts) == 1);
    REQUIRE(pair.deliver(Kind::rtr_ack));
    REQUIRE(pair.deliver(Kind::rts));
    CHECK(first.state == ReceiveState::incoming);
    CHECK(second.state == ReceiveState::reading);
    pair.settle();
    CHECK(got(first, one));
    CHECK(got(second, two));
    CHECK(at_sender(pair).rtr_used == 1);
    CHECK(pair.sender().comm().peer(1).kept_rtrs == 0);
  }
}

TEST_CASE(
    "Fig. 7 case 2, Fig. 8 case 2: RTR and RTS cross; the RTS goes to the first receive and the "
    "RTR is dropped (P1.6)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Receive& first = pair.receive_large();
    Receive& second = pair.receive_large();
    Send& one = pair.rendezvous();
    CHECK(pair.on_its_way(Kind::rts) == 1);
    REQUIRE(pair.deliver(Kind::rtr));  // for the send that has sent its RTS already
    REQUIRE(pair.deliver(Kind::rtr));  // for the next one
    CHECK(pair.sender().comm().peer(1).kept_rtrs == 1);
    Send& two = pair.rendezvous();
    CHECK(pair.on_its_way(Kind::rtr_ack) == 1);
    pair.settle();
    CHECK(got(first, one));
    CHECK(got(second, two));
    CHECK(at_sender(pair).rtr_used == 1);
    CHECK(pair.receiver().counters().rts_ack_sent == 0);  // the receive had sent an RTR
  }
}

TEST_CASE(
    "Fig. 8: a receive that finds an RTS sends no RTR; the paper's policy acknowledges (P1.2, "
    "P1.6)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Send& one = pair.rendezvous();
    REQUIRE(pair.deliver(Kind::rts));
    Receive& first = pair.receive_large();
    CHECK(pair.on_its_way(Kind::rtr) == 0);
    CHECK(pair.on_its_way(Kind::rts_ack) == (policy == HazardPolicy::eager_flag ? 1 : 0));
    pair.settle();
    CHECK(got(first, one));
    CHECK(one.complete);
  }
}

TEST_CASE(
    "Fig. 9: no RTR behind a receive that predicts eager, nor behind one from any source or of any "
    "tag (P1.7)") {
  for (const HazardPolicy policy : both_policies) {
    for (int ahead = 0; ahead < 3; ++ahead) {
      Pair pair(policy);
      Receive& first = ahead == 0   ? pair.receive_small()
                       : ahead == 1 ? pair.receiver().irecv(any_source, 5, 6, true)
                                    : pair.receiver().irecv(0, any_tag, 6, true);
      Receive& second = pair.receive_large();
      CHECK(pair.on_its_way(Kind::rtr) == 0);
      Send& one = pair.send(SendMode::rendezvous, ahead == 0 ? 2 : 6);
      Send& two = pair.rendezvous();
      pair.settle();
      CHECK(got(first, one));
      CHECK(got(second, two));
    }
  }
}

TEST_CASE("Fig. 9: once the receive ahead is gone, the next one sends its RTR (P1.7)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    Receive& first = pair.receiver().irecv(any_source, 5, 6, true);
    Receive& second = pair.receive_large();
    Send& one = pair.rendezvous();
    pair.settle();
    CHECK(got(first, one));
    CHECK(second.state == ReceiveState::offered);
    Send& two = pair.rendezvous();
    pair.settle();
    CHECK(got(second, two));
    CHECK(at_sender(pair).rtr_used == 1);
  }
}

TEST_CASE(
    "Fig. 10: an RTR that was meant for an eager message is not used for the next rendezvous "
    "message (P1.8)") {
  for (const HazardPolicy policy : both_policies) {
    for (const bool rtr_first : {true, false}) {
      Pair pair(policy);
      Receive& first = pair.receive_large();  // mispredicts
      if (rtr_first) REQUIRE(pair.deliver(Kind::rtr));
      Send& one = pair.eager();
      if (!rtr_first) REQUIRE(pair.deliver(Kind::rtr));
      Send& two = pair.rendezvous();
      CHECK(pair.on_its_way(Kind::rts) == 1);
      CHECK(at_sender(pair).rtr_used == 0);
      CHECK(pair.sender().comm().peer(1).kept_rtrs == 0);
      Receive& second = pair.receive_large();
      pair.settle();
      CHECK(got(first, one));
      CHECK(got(second, two));
    }
  }
}

TEST_CASE("Fig. 11: Eager-flag, stop-RTR, RTS-ACK, resume-RTR (P1.8)") {
  Pair pair(HazardPolicy::eager_flag);
  Receive& first = pair.receive_large();
  REQUIRE(pair.deliver(Kind::rtr));
  Send& one = pair.eager();
  Send& two = pair.rendezvous();
  CHECK((pair.peek<RtsHeader>(Kind::rts).head.flags & flag::hazard_stop) != 0);
  REQUIRE(pair.deliver(Kind::eager));
  REQUIRE(pair.deliver(Kind::rts));
  Receive& second = pair.receive_large();  // takes the RTS that waits
  CHECK((pair.peek<RtsAckHeader>(Kind::rts_ack).head.flags & flag::hazard_stop) != 0);
  Receive& third = pair.receive_large();
  CHECK(pair.on_its_way(Kind::rtr) == 0);  // stopped
  pair.settle();
  CHECK(got(first, one));
  CHECK(got(second, two));

  Send& three = pair.rendezvous();
  CHECK((pair.peek<RtsHeader>(Kind::rts).head.flags & flag::hazard_resume) != 0);
  pair.settle();
  CHECK(got(third, three));
  CHECK(at_sender(pair).eager_flag_stops == 1);
  CHECK(at_sender(pair).eager_flag_resumes == 1);

  Receive& fourth = pair.receive_large();
  pair.settle();
  Send& four = pair.rendezvous();
  pair.settle();
  CHECK(got(fourth, four));
  CHECK(at_sender(pair).rtr_used == 1);
}

TEST_CASE(
    "Fig. 11: a program that always has receives posted speculates again after the resume (P1.8)") {
  Pair pair(HazardPolicy::eager_flag);
  std::vector<Receive*> receives{&pair.receive_large(), &pair.receive_large(),
                                 &pair.receive_large()};
  pair.settle();
  std::vector<Send*> sends{&pair.eager()};
  for (int i = 0; i < 8; ++i) {
    receives.push_back(&pair.receive_large());
    sends.push_back(&pair.rendezvous());
    pair.settle();
  }
  for (std::size_t i = 0; i < sends.size(); ++i) CHECK(got(*receives[i], *sends[i]));
  CHECK(at_sender(pair).eager_flag_stops == 1);
  // One rendezvous stops, one resumes; from then on every RTR is in time.
  CHECK(at_sender(pair).rtr_used == 6);
}

TEST_CASE("Fig. 12: whatever is not sent or dropped, the RTS completes every message (P1.10)") {
  const HazardPolicy policy = GENERATE(HazardPolicy::envelope_sequence, HazardPolicy::eager_flag);
  SECTION("no RTR was sent") {
    Pair pair(policy);
    Receive& receive = pair.receiver().irecv(any_source, 5, 6, true);
    Send& send = pair.rendezvous();
    pair.settle();
    CHECK(got(receive, send));
  }
  SECTION(
      "the RTR is dropped because its buffer is too small: truncation, and the sender completes") {
    Pair pair(policy);
    Receive& receive = pair.receive_large(4);
    REQUIRE(pair.deliver(Kind::rtr));
    Send& send = pair.rendezvous(6);
    pair.settle();
    CHECK(got(receive, send));
    CHECK(receive.truncated());
    CHECK(send.complete);
    CHECK(at_sender(pair).rtr_dropped == 1);
  }
  SECTION("the sender does not speculate at all (P1.12)") {
    Config off;
    off.speculation = false;
    Pair pair(policy, off);
    Receive& receive = pair.receive_large();
    CHECK(pair.on_its_way(Kind::rtr) == 0);
    Send& send = pair.rendezvous();
    pair.settle();
    CHECK(got(receive, send));
    CHECK(at_receiver(pair).rts_ack_sent == 0);
  }
  SECTION("an empty message by rendezvous while an RTR is kept") {
    Pair pair(policy);
    Receive& receive = pair.receive_large();
    REQUIRE(pair.deliver(Kind::rtr));
    Send& send = pair.rendezvous(0);
    pair.settle();
    CHECK(got(receive, send));
    CHECK(send.complete);
  }
  SECTION("neither read nor write is possible") {
    Transport push_only;
    push_only.reads = false;
    push_only.write = Transport::Write::none;
    Pair pair(policy, {}, push_only);
    Send& one = pair.rendezvous();
    Receive& first = pair.receive_large();
    pair.settle();
    Receive& second = pair.receive_large();
    pair.settle();
    Send& two = pair.rendezvous();
    pair.settle();
    CHECK(got(first, one));
    CHECK(got(second, two));
    CHECK(at_sender(pair).rtr_used == 1);
  }
}

TEST_CASE("DONE behind a write reaches the receiver before the sender knows of the end (P1.3)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy, {}, {.chain = Transport::Chain::at_once});
    Receive& receive = pair.receive_large();
    REQUIRE(pair.deliver(Kind::rtr));
    Send& send = pair.rendezvous();
    CHECK(pair.on_its_way(Kind::rtr_ack) == 1);  // at once, so that later messages are matched
    CHECK(pair.on_its_way(Kind::done) == 0);
    REQUIRE(pair.move_data());
    REQUIRE(pair.deliver(Kind::done));
    CHECK_FALSE(receive.complete);  // not matched yet
    REQUIRE(pair.deliver(Kind::rtr_ack));
    CHECK(got(receive, send));
    CHECK_FALSE(send.complete);
    REQUIRE(pair.notice());
    CHECK(send.complete);
    CHECK(pair.quiet());  // no second DONE
    CHECK(at_sender(pair).done_chained == 1);
    CHECK(pair.sender().protocol().open_handles() + pair.receiver().protocol().open_handles() == 0);
  }
}

TEST_CASE("DONE behind a read reaches the sender before the receiver knows of the end (P1.2)") {
  for (const HazardPolicy policy : both_policies) {
    for (const bool notice_first : {false, true}) {
      Pair pair(policy, {}, {.chain = Transport::Chain::at_once});
      Send& send = pair.rendezvous();
      REQUIRE(pair.deliver(Kind::rts));
      Receive& receive = pair.receive_large();
      CHECK(receive.state == ReceiveState::chained);
      REQUIRE(pair.move_data());
      if (notice_first) REQUIRE(pair.notice());
      REQUIRE(pair.deliver(Kind::done));
      CHECK(send.complete);
      CHECK(receive.complete == notice_first);
      pair.settle();
      CHECK(got(receive, send));
      CHECK(at_receiver(pair).done_chained == 1);
    }
  }
}

TEST_CASE(
    "A write that stalls in the middle has DONE behind its last piece, after the RTR-ACK (P1.3)") {
  Pair pair(HazardPolicy::envelope_sequence, {}, {.chain = Transport::Chain::after_stall});
  Receive& receive = pair.receive_large();
  REQUIRE(pair.deliver(Kind::rtr));
  Send& send = pair.rendezvous();
  CHECK(send.state == SendState::writing);
  CHECK(pair.on_its_way(Kind::rtr_ack) == 1);
  REQUIRE(pair.go_on_posting());
  CHECK(send.state == SendState::chained);
  pair.settle();
  CHECK(got(receive, send));
  CHECK(at_sender(pair).done_chained == 1);
}

TEST_CASE(
    "A receive that is always mispredicted stops by itself and starts again with the next RTS "
    "(P1.9)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    for (int i = 0; i < 10; ++i) {
      Receive& receive = pair.receive_large();
      pair.settle();
      Send& send = pair.eager();
      pair.settle();
      CHECK(got(receive, send));
      CHECK(pair.sender().comm().peer(1).kept_rtrs == 0);
    }
    CHECK(at_receiver(pair).rtr_sent == 4);
    CHECK(at_receiver(pair).mutes == 1);
    for (int i = 0; i < 6; ++i) {
      Receive& receive = pair.receive_large();
      pair.settle();
      Send& send = pair.rendezvous();
      pair.settle();
      CHECK(got(receive, send));
    }
    CHECK(at_sender(pair).rtr_used >= 4);
  }
}

TEST_CASE("A program that always has receives posted speculates again after it was mute (P1.9)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    std::vector<Receive*> receives;
    std::vector<Send*> sends;
    for (int i = 0; i < 3; ++i) receives.push_back(&pair.receive_large());
    for (int i = 0; i < 30; ++i) {
      receives.push_back(&pair.receive_large());
      pair.settle();
      sends.push_back(i < 10 ? &pair.eager() : &pair.rendezvous());
      pair.settle();
    }
    for (std::size_t i = 0; i < sends.size(); ++i) CHECK(got(*receives[i], *sends[i]));
    CHECK(at_receiver(pair).mutes == 1);
    CHECK(at_sender(pair).rtr_used >= 17);
  }
}
