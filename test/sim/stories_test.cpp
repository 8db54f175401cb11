// The scenarios of the paper's figures, message by message.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

constexpr HazardPolicy both_policies[] = {HazardPolicy::envelope_sequence,
                                          HazardPolicy::eager_flag};

const Counters& at_sender(Pair& pair) { return pair.sender().counters(); }
const Counters& at_receiver(Pair& pair) { return pair.receiver().counters(); }

}  // namespace

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

TEST_CASE(
    "Crossing RTRs stop the speculation; it is tried again after the resume interval (P1.11)") {
  for (const HazardPolicy policy : both_policies) {
    Config config;
    config.adaptation.min_sample_rtrs = 4;
    config.adaptation.resume_interval_rts = 8;
    Pair pair(policy, config);
    for (int i = 0; i < 40; ++i) {
      Receive& receive = pair.receive_large();
      Send& send = pair.rendezvous();  // before the RTR is there
      pair.settle();
      CHECK(got(receive, send));
    }
    CHECK(at_sender(pair).adaptation_stops >= 2);
    CHECK(at_sender(pair).adaptation_resumes >= 2);
    CHECK(at_receiver(pair).rtr_sent <= 26);
    CHECK(at_sender(pair).rtr_used == 0);
  }
}

namespace {

/// A message whose RTR crosses its RTS.
void cross(Pair& pair) {
  Receive& receive = pair.receive_large();
  Send& send = pair.rendezvous();
  pair.settle();
  CHECK(got(receive, send));
}

/// A message whose receive has been posted long before.
void in_time(Pair& pair, int tag = 5) {
  Receive& receive = pair.receive_large(6, tag);
  pair.settle();
  Send& send = pair.send(SendMode::rendezvous, 6, tag);
  pair.settle();
  CHECK(got(receive, send));
}

}  // namespace

TEST_CASE(
    "A stopped envelope speculates again within 4 messages once its receives are early (P1.15)") {
  for (const HazardPolicy policy : both_policies) {
    Pair pair(policy);
    for (int i = 0; i < 100; ++i) cross(pair);
    CHECK(at_sender(pair).adaptation_stops >= 1);
    CHECK(at_sender(pair).rtr_used == 0);
    // The sample, a probe for every fourth message, and the attempt after 64 of them.
    CHECK(at_receiver(pair).rtr_sent <= 16 + 100 / 4 + 16);
    for (int i = 0; i < 4; ++i) in_time(pair);
    CHECK(at_sender(pair).rtr_used >= 1);
    const std::uint64_t used = at_sender(pair).rtr_used;
    for (int i = 0; i < 20; ++i) in_time(pair);
    CHECK(at_sender(pair).rtr_used == used + 20);
  }
}

TEST_CASE("A sender that has forgotten a stopped envelope resumes it (P1.11)") {
  Config config;
  config.adaptation.min_sample_rtrs = 4;
  config.envelopes.envelopes_max = 1;
  Pair pair(HazardPolicy::envelope_sequence, config);
  while (at_sender(pair).adaptation_stops == 0) cross(pair);
  pair.send(SendMode::rendezvous, 6, 6);  // forgets tag 5 at the sender
  Receive& other = pair.receive_small();
  pair.receiver().cancel(other);
  pair.receiver().irecv(0, 6, 2, false);
  pair.settle();
  const std::uint64_t resumes = at_sender(pair).adaptation_resumes;
  Receive& receive = pair.receive_small();
  Send& send = pair.rendezvous();
  CHECK((pair.peek<RtsHeader>(Kind::rts).head.flags & flag::adapt_resume) != 0);
  pair.settle();
  CHECK(receive.truncated());
  CHECK(send.complete);
  CHECK(at_sender(pair).adaptation_resumes == resumes + 1);
}

TEST_CASE("A sender that does not speculate says so once, with its first message (P1.12)") {
  for (const HazardPolicy policy : both_policies) {
    Config off;
    off.speculation = false;
    Pair pair(policy, {}, {}, true, off);
    pair.receive_large();
    pair.receive_large();
    CHECK(pair.on_its_way(Kind::rtr) == 2);
    pair.rendezvous();
    pair.eager();
    pair.settle();
    for (int i = 0; i < 50; ++i) in_time(pair);
    CHECK(at_receiver(pair).rtr_sent == 2);
    CHECK(at_receiver(pair).rts_ack_sent == 0);
  }
}

TEST_CASE(
    "The early look is for an RTR of the very tag, and stops with the speculation (P1.4, P1.11)") {
  Pair pair(HazardPolicy::envelope_sequence);
  Peer& to = pair.sender().comm().peer(1);
  Protocol& sender = pair.sender().protocol();
  pair.receive_large(6, 6);
  pair.settle();
  CHECK_FALSE(Protocol::has_rtr(to, 5));
  CHECK(sender.wants_early_progress(to, 5));
  CHECK(Protocol::has_rtr(to, 6));
  CHECK_FALSE(sender.wants_early_progress(to, 6));
  Receive asked;
  asked.source = 0;
  asked.tag = 5;
  Protocol& receiver = pair.receiver().protocol();
  CHECK(receiver.wants_early_progress(pair.receiver().comm(), asked));
  while (at_sender(pair).adaptation_stops == 0) cross(pair);
  CHECK_FALSE(sender.wants_early_progress(to, 5));
  CHECK(receiver.wants_early_progress(pair.receiver().comm(), asked));  // for the evidence
  pair.receiver().comm().peer(0).receive_envelopes.get(5, {})->muted = true;
  CHECK_FALSE(receiver.wants_early_progress(pair.receiver().comm(), asked));
}

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
