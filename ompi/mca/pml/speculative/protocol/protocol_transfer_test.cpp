// Messages about data and its ends, and messages that cannot be.
// SPDX-License-Identifier: BSD-3-Clause
#include "protocol_bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::bench;

TEST_CASE("Messages that cannot be are refused and change nothing") {
  for (const HazardPolicy policy : {HazardPolicy::envelope_sequence, HazardPolicy::eager_flag}) {
    Side side(policy);
    ReceiveOp queued;
    side.post(queued, 10, false);
    CHECK(side.arrives(done_for(5, false)) != nullptr);
    CHECK(side.arrives(done_for(5, true)) != nullptr);
    CHECK(side.arrives(bytes_of(TargetedHeader{kind_version(Kind::sync_ack), 0, 0, 0, 77})) !=
          nullptr);
    CHECK(side.arrives(bytes_of(FragHeader{{kind_version(Kind::frag), 0, 0, 0, 77}, 0}, "data")) !=
          nullptr);
    GrantHeader grant{};
    grant.head = {kind_version(Kind::grant), 0, 0, 0, 77};
    grant.receive = 1;
    grant.length_bytes = 1;
    CHECK(side.arrives(bytes_of(grant)) != nullptr);
    SequencedHeader far = head(Kind::eager, 0);
    far.source = 2;
    CHECK(side.arrives(bytes_of(far, "x")) ==
          std::string("a source rank outside the communicator"));
    CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 0), 5, 77})) != nullptr);
    CHECK(side.arrives(bytes_of(RevokeHeader{head(Kind::revoke_ack, 1)})) != nullptr);
    CHECK(side.comm.posted_count == 1);
    CHECK(side.delivered.empty());
    CHECK(side.taken().empty());
    CHECK(side.protocol.open_handles() == 0);
    side.protocol.cancel(side.comm, queued);
  }
}

TEST_CASE("A GRANT must fit its send (P1.2)") {
  Side side;
  SendOp op;
  op.peer = &side.comm.peer(1);
  op.tag = 5;
  op.length_bytes = 100;
  side.protocol.start_send(op);
  side.taken();
  GrantHeader grant{};
  grant.head = {kind_version(Kind::grant), 0, 0, 0, op.handle};
  grant.receive = 1;
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{101}, ~std::uint64_t{0}}) {
    grant.length_bytes = length;
    CHECK(side.arrives(bytes_of(grant)) != nullptr);
    CHECK(op.state == SendState::waiting);
  }
  grant.length_bytes = 100;
  CHECK(side.arrives(bytes_of(grant)) == nullptr);
  CHECK(op.state == SendState::writing);
  CHECK(side.arrives(bytes_of(grant)) != nullptr);  // duplicate
  CHECK(side.arrives(done_for(op.handle, false)) != nullptr);
  side.protocol.write_done(op);
  CHECK(side.protocol.open_handles() == 0);
}

TEST_CASE("An RTS says whether its caller waits, and the receive that it matches knows") {
  const bool sender_waits = GENERATE(false, true);
  const bool posted_first = GENERATE(false, true);
  Side side;
  SendOp send;
  send.peer = &side.comm.peer(1);
  send.tag = 5;
  send.length_bytes = 100;
  send.caller_waits = sender_waits;
  side.protocol.start_send(send);
  const auto sent = side.taken();
  REQUIRE(sent.size() == 1);
  const auto flags = load<SequencedHeader>(sent[0].message.header).flags;
  CHECK(((flags & flag::sender_waits) != 0) == sender_waits);

  RtsHeader header{};
  header.head = head(Kind::rts, 0);
  header.head.flags = flags;
  header.length_bytes = 100;
  header.send = 1;
  ReceiveOp op;
  op.sender_waits = !sender_waits;  // of a message before
  if (posted_first) side.post(op, 100, false);
  CHECK(side.arrives(bytes_of(header)) == nullptr);
  if (!posted_first) side.post(op, 100, false);
  CHECK(op.state == ReceiveState::reading);
  CHECK(op.sender_waits == sender_waits);
}

TEST_CASE("A fragment must fit its receive, and comes before or after the RTR-ACK (P1.3)") {
  Side side;
  ReceiveOp op;
  side.post(op, 8, true);
  const auto actions = side.taken();
  REQUIRE(actions.size() == 1);
  const Handle receive = op.handle;
  const auto frag = [&](std::uint64_t offset, std::string_view data) {
    return side.arrives(
        bytes_of(FragHeader{{kind_version(Kind::frag), 0, 0, 0, receive}, offset}, data));
  };
  CHECK(frag(9, "x") != nullptr);
  CHECK(frag(8, "x") != nullptr);
  CHECK(frag(4, "12345") != nullptr);
  CHECK(frag(~std::uint64_t{0}, "12345") != nullptr);
  CHECK(side.delivered.empty());
  CHECK(frag(0, "1234") == nullptr);
  CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 0), 9, receive})) !=
        nullptr);  // more than was offered
  CHECK(op.state == ReceiveState::offered);
  CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 1), 6, receive})) == nullptr);
  CHECK(op.state == ReceiveState::incoming);
  CHECK(frag(4, "567") != nullptr);  // behind the message's end
  CHECK(frag(4, "56") == nullptr);
  CHECK(op.state == ReceiveState::idle);
  CHECK(side.protocol.open_handles() == 0);
  CHECK(frag(0, "1") == nullptr);  // the handle is stale
  CHECK(side.counters.stale_dropped == 1);
}

TEST_CASE("An RTR-ACK is for the receive that its place in the stream matches (P1.6)") {
  Side side;
  ReceiveOp first;
  ReceiveOp second;
  side.post(first, 8, true);
  side.post(second, 8, true);
  CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 0), 8, second.handle})) ==
        std::string("an RTR-ACK for a receive that the message does not match"));
  CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 1), 8, first.handle})) == nullptr);
  CHECK(side.arrives(done_for(first.handle, true)) == nullptr);
  CHECK(first.state == ReceiveState::idle);
  side.protocol.cancel(side.comm, second);
  CHECK(second.state == ReceiveState::revoking);
  CHECK(side.arrives(bytes_of(RevokeHeader{head(Kind::revoke_ack, 2)})) == nullptr);
  CHECK(second.state == ReceiveState::idle);
}

namespace {

/// A receive whose RTR names no memory, cancelled. @returns  the handle that its RTR has told
Handle cancelled_offer(Side& side, ReceiveOp& op) {
  side.post(op, 8, true);
  op.names_memory = false;
  const Handle handle = op.handle;
  side.protocol.cancel(side.comm, op);
  REQUIRE(op.state == ReceiveState::idle);
  return handle;
}

Bytes rtr_ack(std::uint16_t sequence, Handle receive, std::uint64_t length_bytes) {
  return bytes_of(RtrAckHeader{head(Kind::rtr_ack, sequence), length_bytes, receive});
}
Bytes fragment(Handle receive, std::uint64_t offset_bytes, std::string_view payload) {
  return bytes_of(FragHeader{{kind_version(Kind::frag), 0, 0, 0, receive}, offset_bytes}, payload);
}

}  // namespace

TEST_CASE("An RTS behind a message that used a cancelled RTR is answered (P1.7, P1.8)") {
  // Under eager_flag each RTS is answered by one RTR or one RTS-ACK. The RTR of the cancelled
  // receive has answered the first message, not the RTS.
  for (const bool posted_before : {false, true}) {
    CAPTURE(posted_before);
    Side side(HazardPolicy::eager_flag);
    ReceiveOp cancelled;
    ReceiveOp first;
    ReceiveOp second;
    const Handle handle = cancelled_offer(side, cancelled);
    if (posted_before) side.post(first, 8, true);
    CHECK(side.arrives(rtr_ack(0, handle, 4)) == nullptr);
    CHECK(side.arrives(fragment(handle, 0, "data")) == nullptr);
    if (!posted_before) {
      first.source = 1;
      first.tag = 5;
      first.capacity_bytes = 8;
      Arrived* message = side.protocol.post_receive(side.comm, first);
      REQUIRE(message != nullptr);
      CHECK(message->payload_bytes == 4);
      Arrived::destroy(message);
    } else {
      CHECK(side.delivered == std::vector<std::string>{"data"});
    }
    CHECK(side.counters.rts_ack_sent == 0);
    side.post(second, 200, true);
    CHECK(side.arrives(rts(1)) == nullptr);
    CHECK(side.counters.rts_ack_sent == 1);
  }
}

TEST_CASE("Fragments of a collected message stay inside it (P1.7)") {
  Side side;
  ReceiveOp cancelled;
  const Handle handle = cancelled_offer(side, cancelled);
  CHECK(side.arrives(rtr_ack(0, handle, 6)) == nullptr);
  CHECK(side.arrives(fragment(handle, 4, "abc")) != nullptr);
  CHECK(side.arrives(fragment(handle, 7, "a")) != nullptr);
  CHECK(side.arrives(fragment(handle, ~std::uint64_t{0}, "ab")) != nullptr);
  CHECK(side.arrives(fragment(handle, 0, "abcd")) == nullptr);
  CHECK(side.arrives(fragment(handle, 2, "cdef")) != nullptr);  // more in all than the message has
  CHECK(side.arrives(fragment(handle, 4, "ef")) == nullptr);
  ReceiveOp op;
  op.source = 1;
  op.tag = 5;
  op.capacity_bytes = 8;
  Arrived* message = side.protocol.post_receive(side.comm, op);
  REQUIRE(message != nullptr);
  CHECK(std::memcmp(message->payload(), "abcdef", 6) == 0);
  Arrived::destroy(message);
}

TEST_CASE("DONE overtakes the RTR-ACK (P1.3)") {
  Side side;
  ReceiveOp op;
  side.post(op, 8, true);
  CHECK(side.arrives(done_for(op.handle, true)) == nullptr);
  CHECK(op.state == ReceiveState::offered);
  CHECK(side.arrives(bytes_of(RtrAckHeader{head(Kind::rtr_ack, 0), 8, op.handle})) == nullptr);
  CHECK(op.state == ReceiveState::idle);
}

TEST_CASE("A process that ends answers a REVOKE only where somebody waits (P1.7)") {
  for (const bool ending : {false, true}) {
    for (const bool waits : {false, true}) {
      Side side;
      side.ending = ending;
      RevokeHeader revoke{head(Kind::revoke, 0)};
      if (!waits) revoke.head.flags = flag::nobody_waits;
      CHECK(side.arrives(bytes_of(revoke)) == nullptr);
      const std::vector<Action> actions = side.taken();
      CHECK(actions.size() == (ending && !waits ? 0 : 1));
      for (const Action& action : actions) CHECK(action.message.kind() == Kind::revoke_ack);
    }
  }
}
