// Places in the outgoing streams, and what a peer must be told before a message.
// SPDX-License-Identifier: BSD-3-Clause
#include "outbox.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

struct Alone final : Host {
  void deliver(ReceiveOp&, std::uint64_t, std::span<const std::byte>) override {}
  std::uint64_t process_of(const Communicator&, std::int32_t rank) override {
    return static_cast<std::uint64_t>(rank);
  }
};

struct Sender {
  Alone host;
  Streams streams{host, 0, true, HeldBound{}, first_agreed_context};
  Outbox outbox{streams};
  Communicator& comm = streams.add({.context = 7, .size = 3, .agreed_incarnation = 0});
};

RevokeHeader of_kind(Kind kind, Peer& peer) {
  return {is_forward(kind) ? Outbox::forward_head(kind, peer, 5, Outbox::take_sequence(peer, 5))
                           : Outbox::reverse_head(kind, peer, 5)};
}

}  // namespace

TEST_CASE("Outbox: each stream to each peer counts by itself") {
  Sender sender;
  Peer& first = sender.comm.peer(1);
  Peer& second = sender.comm.peer(2);
  CHECK(of_kind(Kind::revoke_ack, first).head.sequence == 0);
  CHECK(of_kind(Kind::revoke_ack, first).head.sequence == 1);
  CHECK(of_kind(Kind::revoke, first).head.sequence == 0);
  CHECK(of_kind(Kind::revoke_ack, second).head.sequence == 0);
  CHECK(of_kind(Kind::revoke, first).head.sequence == 1);
}

TEST_CASE("Outbox: a forward message carries the own incarnation, a reverse one the peer's") {
  Sender sender;
  Communicator& comm = sender.streams.add({.context = 9, .my_rank = 2, .size = 3});
  Peer& peer = comm.peer(1);
  peer.bound = 77;
  CHECK(of_kind(Kind::revoke_ack, peer).head.incarnation == comm.incarnation);
  CHECK(of_kind(Kind::revoke, peer).head.incarnation == 77);
  CHECK(of_kind(Kind::revoke, peer).head.source == 2);
}

TEST_CASE("Outbox: every field of a forward header is in its place") {
  Sender sender;
  Communicator& comm =
      sender.streams.add({.context = 0xfedc, .my_rank = 0x12345678, .size = 0x20000000});
  comm.incarnation = 0xabcd;
  Peer& peer = comm.peer(1);
  for (const std::int32_t tag : {0, 1, -17, INT32_MAX, INT32_MIN}) {
    const SequencedHeader head = Outbox::forward_head(Kind::rts, peer, tag, 0x98765);
    CHECK(head.kind_version == kind_version(Kind::rts));
    CHECK(head.flags == 0);
    CHECK(head.context == 0xfedc);
    CHECK(head.source == 0x12345678);
    CHECK(head.tag == tag);
    CHECK(head.sequence == 0x8765);
    CHECK(head.incarnation == 0xabcd);
  }
}

TEST_CASE("Outbox: a peer is told the era once, by a forward message") {
  Sender sender;
  Peer& peer = sender.comm.peer(1);
  CHECK_FALSE(sender.outbox.emit_control(peer, of_kind(Kind::revoke, peer)).message.with_prefix);
  CHECK(sender.outbox.emit_control(peer, of_kind(Kind::revoke_ack, peer)).message.with_prefix);
  CHECK_FALSE(
      sender.outbox.emit_control(peer, of_kind(Kind::revoke_ack, peer)).message.with_prefix);
  (void)sender.streams.add({.context = 9, .size = 3});
  const Action apart = sender.outbox.control_action(peer, of_kind(Kind::stream_end, peer));
  CHECK(apart.message.with_prefix);
  CHECK(apart.peer == &peer);
  CHECK(sender.outbox.actions().size() == 3);  // the last one is the caller's
}

TEST_CASE("Outbox: a targeted message names a request, and has no place in a stream") {
  Sender sender;
  Peer& peer = sender.comm.peer(1);
  const Action& action = sender.outbox.emit_targeted(peer, Kind::sync_ack, 0, 1234);
  CHECK(action.kind == Action::Kind::control);
  CHECK(action.message.kind() == Kind::sync_ack);
  CHECK_FALSE(action.message.with_prefix);
  CHECK(load<TargetedHeader>(action.message.header).target == 1234);
  CHECK(peer.next_sequence == 0);
  CHECK(peer.next_reverse == 0);
}
