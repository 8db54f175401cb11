// Faults planted into the protocol: the explorer must notice each.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/sim/sweep.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::sim;

namespace {

struct Planted {
  const char* name;
  Fault fault;
  HazardPolicy policy;
  Program sends;
  Program receives;
  Transport transport = {};
  bool world = true;
  bool room = true;
  Order order = Order::kept;
  unsigned communicators_before[2] = {};
};

}  // namespace

TEST_CASE("Explorer: planted faults are noticed") {
  constexpr auto by_number = HazardPolicy::envelope_sequence;
  constexpr auto by_flag = HazardPolicy::eager_flag;
  const Transport chained{.chain = Transport::Chain::at_once};
  const Transport at_once{.write = Transport::Write::at_once};
  const Transport fragments{.write = Transport::Write::none};
  const Transport chained_writes{.reads = false, .chain = Transport::Chain::at_once};
  const std::vector<Planted> faults{
      {"no RTR-ACK (P1.6)",
       Fault::no_rtr_ack,
       by_number,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"no RTR-ACK (P1.6), paper's policy",
       Fault::no_rtr_ack,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"no RTS-ACK (P1.6)",
       Fault::no_rts_ack,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_large(), receive_large()}},
      {"RTR behind a wildcard (P1.7)",
       Fault::rtr_behind_wildcard,
       by_number,
       {rendezvous(), rendezvous()},
       {receive_any_tag(), receive_large()}},
      {"RTR behind a wildcard (P1.7), paper's policy",
       Fault::rtr_behind_wildcard,
       by_flag,
       {rendezvous(), rendezvous()},
       {receive_any_tag(), receive_large()}},
      {"Eager-flag never set (P1.8)",
       Fault::eager_flag_never_set,
       by_flag,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"eager message not counted (P1.8)",
       Fault::eager_flag_never_set,
       by_number,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"stop-RTR lost (P1.8)",
       Fault::stop_rtr_lost,
       by_flag,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"REVOKE not awaited (P1.7)",
       Fault::revoke_not_awaited,
       by_number,
       {rendezvous()},
       {receive_large(), cancel(0)}},
      {"late RTR taken for a new one (P1.8)",
       Fault::late_rtr_taken_for_new,
       by_number,
       {eager(), rendezvous()},
       {receive_large(), receive_large()}},
      {"ghost dropped: message lost (P1.7)",
       Fault::ghost_dropped,
       by_number,
       {rendezvous()},
       {receive_large(), cancel(0), receive_large()},
       fragments},
      {"fragment into a cancelled buffer (P1.7)",
       Fault::fragment_to_cancelled,
       by_flag,
       {rendezvous()},
       {receive_large(), cancel(0), receive_large()},
       fragments},
      {"chained DONE before its write (P1.3)",
       Fault::chained_ahead,
       by_number,
       {rendezvous()},
       {receive_large()},
       chained_writes},
      {"chained DONE before its read (P1.2)",
       Fault::chained_ahead,
       by_flag,
       {rendezvous()},
       {receive_large()},
       chained},
      {"identity not checked: unbound stream", Fault::identity_not_checked, by_number,
       reuse({eager()}, {eager()}), reuse({}, {receive_small()}), at_once, false, true,
       Order::none},
      {"identity not checked: bound stream", Fault::identity_not_checked, by_number,
       reuse({eager(), eager()}, {eager(), eager()}),
       reuse({receive_small()}, {receive_small(), receive_small()}), at_once, false, true,
       Order::none},
      {"era not carried, receiver ahead",
       Fault::era_not_carried,
       by_number,
       reuse({}, {eager()}),
       reuse({}, {receive_small()}),
       at_once,
       false,
       true,
       Order::kept,
       {0, 3}},
      {"era not carried, sender ahead",
       Fault::era_not_carried,
       by_number,
       reuse({eager()}, {eager()}),
       reuse({}, {receive_small()}),
       at_once,
       false,
       true,
       Order::none,
       {3, 0}},
      {"no stream_end",
       Fault::no_stream_end,
       by_number,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false},
      {"stream_end ignored",
       Fault::stream_end_ignored,
       by_flag,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false},
      {"what waits for room dies with its communicator",
       Fault::queue_dies_with_communicator,
       by_number,
       {eager(), free_communicator(), stop()},
       {receive_large(), receive_large(), cancel(1), free_communicator()},
       at_once,
       false,
       false},
  };
  for (const Planted& planted : faults) {
    CAPTURE(planted.name);
    Case test = make_case(planted.policy, planted.sends, planted.receives);
    test.transport = planted.transport;
    test.world = planted.world;
    test.room = planted.room;
    test.order = planted.order;
    std::copy_n(planted.communicators_before, 2, test.communicators_before);
    CHECK(explore(test).violation == "");
    test.fault = planted.fault;
    const Verdict verdict = explore(test);
    CHECK_FALSE(verdict.holds());
    std::printf("planted: %-48s -> %s\n", planted.name,
                verdict.holds() ? "NOT NOTICED" : verdict.violation.c_str());
  }
}
