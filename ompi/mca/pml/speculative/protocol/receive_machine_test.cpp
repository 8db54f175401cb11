// What each step of a receive sends, and the handles by which senders name receives.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_machine.hpp"

#include <cstring>

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

template <class Header>
Header header_of(const Action& action) {
  Header header;
  REQUIRE(action.message.header_bytes == sizeof header);
  std::memcpy(&header, action.message.header.data(), sizeof header);
  return header;
}

/// A receive that has left its queue and is matched with a message.
void match(Bench& bench, ReceiveOp& op, std::uint64_t length_bytes) {
  bench.comm.unpost(op);
  ReceiveMachine::set_matched(op, bench.peer, Bench::tag, length_bytes);
  op.coming_bytes = length_bytes;
}

}  // namespace

TEST_CASE("Receive machine: an early receive sends its RTR and ends when all bytes are here",
          "[P1.3]") {
  Bench bench;
  ReceiveOp first;
  ReceiveOp second;
  bench.peer.expected_sequence = 40;
  bench.offer(first);
  bench.offer(second);
  const std::vector<Action> rtrs = bench.taken();
  REQUIRE(rtrs.size() == 2);
  CHECK(header_of<RtrHeader>(rtrs[0]).receive == first.handle);
  CHECK(header_of<RtrHeader>(rtrs[0]).index == 0);
  CHECK(header_of<RtrHeader>(rtrs[1]).index == 1);
  CHECK(header_of<RtrHeader>(rtrs[1]).base_sequence == 40);
  CHECK(header_of<RtrHeader>(rtrs[1]).capacity_bytes == 100);
  CHECK(bench.counters.rtr_sent == 2);

  match(bench, first, 60);
  bench.machine.advance(first, ReceiveEvent::rtr_ack);
  first.arrived_bytes = 59;
  bench.machine.check_all_here(first);
  CHECK(bench.taken().empty());
  first.arrived_bytes = 60;
  const Handle handle = first.handle;
  bench.machine.check_all_here(first);
  const std::vector<Action> ends = bench.taken();
  REQUIRE(ends.size() == 1);
  CHECK(ends[0].kind == Action::Kind::complete_receive);
  CHECK(ends[0].receive == &first);
  CHECK(bench.machine.find(handle) == nullptr);
  CHECK(bench.machine.is_stale(handle));
  bench.comm.unpost(second);
}

TEST_CASE("Receive machine: after a read the sender is told before the receive completes",
          "[P1.2]") {
  Bench bench;
  ReceiveOp op;
  op.send = 77;
  bench.post(op);
  match(bench, op, 60);
  bench.machine.open(op);
  bench.machine.advance(op, ReceiveEvent::rts);
  CHECK(bench.taken()[0].kind == Action::Kind::read);
  bench.machine.advance(op, ReceiveEvent::read_done);
  const std::vector<Action> ends = bench.taken();
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].message.kind() == Kind::done);
  CHECK(header_of<DoneHeader>(ends[0]).target == 77);
  CHECK(ends[1].kind == Action::Kind::complete_receive);
  CHECK(bench.machine.open_handles() == 0);
}

TEST_CASE("Receive machine: a read that is refused asks for no more than there is room for",
          "[P1.2]") {
  Bench bench;
  ReceiveOp op;
  op.send = 77;
  bench.post(op, 100);
  match(bench, op, 5000);
  bench.machine.open(op);
  bench.machine.advance(op, ReceiveEvent::rts);
  bench.machine.advance(op, ReceiveEvent::read_refused);
  const std::vector<Action> actions = bench.taken();
  REQUIRE(actions.size() == 2);
  const auto grant = header_of<GrantHeader>(actions[1]);
  CHECK(grant.length_bytes == 100);
  CHECK(grant.receive == op.handle);
  CHECK(grant.head.target == 77);
  CHECK(op.state == ReceiveState::granted);
}

TEST_CASE("Receive machine: a cancel is asked of the sender where an RTR is out", "[P1.7]") {
  Bench bench;
  ReceiveOp op;
  SECTION("none is") {
    bench.post(op);
    bench.comm.unpost(op);
    bench.machine.advance(op, ReceiveEvent::cancel);
    const std::vector<Action> actions = bench.taken();
    REQUIRE(actions.size() == 1);
    CHECK(actions[0].kind == Action::Kind::complete_cancelled);
    CHECK(bench.counters.revoke_sent == 0);
  }
  SECTION("one that names memory: it ends with the answer") {
    bench.offer(op);
    static_cast<void>(bench.taken());
    bench.machine.advance(op, ReceiveEvent::cancel);
    const std::vector<Action> asked = bench.taken();
    REQUIRE(asked.size() == 1);
    CHECK(asked[0].message.kind() == Kind::revoke);
    CHECK((header_of<RevokeHeader>(asked[0]).head.flags & flag::nobody_waits) == 0);
    CHECK(bench.envelope().revokes_out == 1);
    CHECK_FALSE(bench.envelope().may_offer());
    bench.comm.unpost(op);
    bench.machine.advance(op, ReceiveEvent::revoked);
    CHECK(bench.taken()[0].kind == Action::Kind::complete_cancelled);
  }
  SECTION("one that names none: nobody waits for the answer") {
    bench.offer(op, false);
    static_cast<void>(bench.taken());
    bench.comm.unpost(op);
    bench.machine.advance(op, ReceiveEvent::cancel_alone);
    const std::vector<Action> actions = bench.taken();
    REQUIRE(actions.size() == 2);
    CHECK((header_of<RevokeHeader>(actions[0]).head.flags & flag::nobody_waits) != 0);
    CHECK(actions[1].kind == Action::Kind::complete_cancelled);
  }
  CHECK(bench.machine.open_handles() == 0);
}

TEST_CASE("Receive machine: a handle is opened once, and may change its owner") {
  Bench bench;
  ReceiveOp giver;
  ReceiveOp heir;
  bench.machine.open(giver);
  const Handle handle = giver.handle;
  bench.machine.open(giver);
  CHECK(giver.handle == handle);
  CHECK(bench.machine.open_handles() == 1);
  bench.machine.rebind(std::exchange(giver.handle, 0), heir);
  CHECK(bench.machine.find(handle) == &heir);
  bench.machine.close(giver);  // has none any more
  CHECK(bench.machine.find(handle) == &heir);
  bench.machine.close(heir);
  CHECK(bench.machine.is_stale(handle));
}
