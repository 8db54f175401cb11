// Envelopes whose speculation stops and starts again, message by message.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/pair.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

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
