// Messages that use the RTR of a cancelled receive: past, in order, duplicate, future.
// SPDX-License-Identifier: BSD-3-Clause
#include "cancellation.hpp"

#include <cstring>

#include "bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

using Delivered = std::vector<Bench::Delivered>;

RtrAckHeader ack_of(Handle receive, std::uint64_t length_bytes) {
  return {{kind_version(Kind::rtr_ack), 0, 7, 1, Bench::tag, 0, 0}, length_bytes, receive};
}

/// A process that has cancelled a receive whose RTR names no memory.
struct Cancelled : Bench {
  Cancelled() {
    offer(op, false);
    handle = op.handle;
    cancellation.cancel(comm, op);
    REQUIRE(op.state == ReceiveState::idle);
    REQUIRE(comm.posted_count == 0);
    static_cast<void>(taken());
  }
  Ghost* ghost() { return static_cast<Ghost*>(machine.find(handle)); }
  const char* fragment(std::uint64_t offset_bytes, const std::string& text) {
    return cancellation.take_fragment(*machine.find(handle), offset_bytes, payload_of(text));
  }

  ReceiveOp op;
  Handle handle = 0;
};

}  // namespace

TEST_CASE("Cancellation: in order, the message goes to the receive that matches it now", "[P1.7]") {
  Cancelled bench;
  ReceiveOp next;
  bench.post(next);
  CHECK(bench.cancellation.use_ghost(*bench.ghost(), bench.peer, ack_of(bench.handle, 4)) ==
        nullptr);
  CHECK(bench.machine.find(bench.handle) == &next);
  CHECK(bench.comm.posted_count == 0);
  CHECK(bench.fragment(2, "ta") == nullptr);
  CHECK(bench.fragment(0, "da") == nullptr);
  CHECK(bench.delivered == Delivered{{&next, 2, "ta"}, {&next, 0, "da"}});
  CHECK(next.state == ReceiveState::idle);
  CHECK(bench.taken().back().kind == Action::Kind::complete_receive);
  CHECK(bench.machine.open_handles() == 0);
}

TEST_CASE("Cancellation: in order, without a receive it is collected until one comes", "[P1.7]") {
  Cancelled bench;
  CHECK(bench.cancellation.use_ghost(*bench.ghost(), bench.peer, ack_of(bench.handle, 4)) ==
        nullptr);
  Arrived* message = bench.comm.find_unexpected(1, Bench::tag);
  REQUIRE(message != nullptr);
  CHECK(message->kind == Kind::rtr_ack);
  CHECK(bench.fragment(0, "da") == nullptr);
  SECTION("a receive comes before the end") {
    ReceiveOp next;
    next.capacity_bytes = 4;
    bench.comm.take(*message);
    bench.cancellation.receive_collected(*message, next);
    CHECK(bench.delivered.empty());
    CHECK(bench.fragment(2, "ta") == nullptr);
    CHECK(bench.delivered == Delivered{{&next, 0, "data"}});
    CHECK(next.state == ReceiveState::idle);
  }
  SECTION("it comes after it: an eager message like others") {
    CHECK(bench.fragment(2, "ta") == nullptr);
    CHECK(message->kind == Kind::eager);
    CHECK(message->ghost == 0);
    CHECK(std::memcmp(message->payload(), "data", 4) == 0);
    CHECK(bench.delivered.empty());
  }
  CHECK(bench.machine.open_handles() == 0);
}

TEST_CASE("Cancellation: past, once the sender has confirmed no handle is left", "[P1.7]") {
  Cancelled bench;
  CHECK(bench.cancellation.on_revoke_ack(bench.peer, Bench::tag) == nullptr);
  CHECK(bench.machine.find(bench.handle) == nullptr);
  CHECK(bench.machine.is_stale(bench.handle));
  CHECK(bench.envelope().may_offer());
  CHECK(bench.envelope().orphaned_rtrs == 0);
}

TEST_CASE("Cancellation: duplicate answers and bytes are refused", "[P1.7]") {
  Cancelled bench;
  SECTION("a second REVOKE-ACK") {
    CHECK(bench.cancellation.on_revoke_ack(bench.peer, Bench::tag) == nullptr);
    CHECK(bench.cancellation.on_revoke_ack(bench.peer, Bench::tag) ==
          std::string("a REVOKE-ACK that nobody waits for"));
  }
  SECTION("a fragment that has come already") {
    CHECK(bench.cancellation.use_ghost(*bench.ghost(), bench.peer, ack_of(bench.handle, 4)) ==
          nullptr);
    CHECK(bench.fragment(0, "dat") == nullptr);
    CHECK(bench.fragment(0, "dat") == std::string(too_many_fragments));
    CHECK(bench.fragment(2, "tab") != nullptr);  // behind the end
    CHECK(bench.fragment(3, "a") == nullptr);
  }
}

TEST_CASE("Cancellation: future, fragments that overtake their RTR-ACK wait for it", "[P1.7]") {
  Cancelled bench;
  ReceiveOp next;
  bench.post(next);
  CHECK(bench.cancellation.put_early_fragment(*bench.ghost(), 2, payload_of("ta")) == nullptr);
  CHECK(bench.delivered.empty());
  CHECK(
      bench.cancellation.put_early_fragment(*bench.ghost(), 0, payload_of(std::string(99, 'x'))) ==
      std::string(too_many_fragments));  // more than the RTR has named
  CHECK(bench.cancellation.use_ghost(*bench.ghost(), bench.peer, ack_of(bench.handle, 4)) ==
        nullptr);
  CHECK(bench.delivered == Delivered{{&next, 2, "ta"}});
  CHECK(bench.fragment(0, "da") == nullptr);
  CHECK(next.state == ReceiveState::idle);
}

TEST_CASE("Cancellation: a receive whose RTR names memory ends with the answer only", "[P1.7]") {
  Bench bench;
  ReceiveOp first;
  ReceiveOp second;
  bench.offer(first, false);
  bench.offer(second, true);
  bench.cancellation.cancel(bench.comm, first);  // a message moves up into the second's memory
  bench.cancellation.cancel(bench.comm, second);
  CHECK(first.state == ReceiveState::revoking);
  CHECK(second.state == ReceiveState::revoking);
  CHECK(bench.envelope().revokes_out == 2);
  static_cast<void>(bench.taken());
  CHECK(bench.cancellation.on_revoke_ack(bench.peer, Bench::tag) == nullptr);
  CHECK(bench.cancellation.on_revoke_ack(bench.peer, Bench::tag) == nullptr);
  CHECK(first.state == ReceiveState::idle);
  CHECK(second.state == ReceiveState::idle);
  CHECK(bench.taken().size() == 2);
  CHECK(bench.machine.open_handles() == 0);
}

TEST_CASE("Cancellation: what another message matches leaves its RTR to a ghost", "[P1.7]") {
  Cancelled bench;
  ReceiveOp next;
  bench.post(next);
  bench.envelope().revokes_out = 0;  // as if it had been offered before the cancel
  bench.offers.try_offer(next);
  const Handle handle = next.handle;
  CHECK_FALSE(bench.cancellation.try_leave_ghost(next));  // it names memory
  next.names_memory = false;
  CHECK(bench.cancellation.try_leave_ghost(next));
  CHECK(next.handle == 0);
  CHECK(bench.machine.find(handle)->state == ReceiveState::ghost);
  bench.comm.unpost(next);
}

TEST_CASE("Cancellation: ghosts go with the peer's stream and with the communicator", "[P1.7]") {
  Cancelled bench;
  SECTION("the peer's stream ends") {
    bench.cancellation.stream_ended(bench.peer);
    CHECK(bench.machine.find(bench.handle) == nullptr);
  }
  SECTION("the communicator goes, with a message half collected and a fragment too early") {
    CHECK(bench.cancellation.use_ghost(*bench.ghost(), bench.peer, ack_of(bench.handle, 4)) ==
          nullptr);
    CHECK(bench.fragment(0, "da") == nullptr);
    bench.cancellation.forget(bench.comm);
    CHECK(bench.machine.open_handles() == 0);
    CHECK(bench.cancellation.take_early_fragments(bench.handle) == nullptr);
  }
}
