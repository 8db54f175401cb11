// Message handlers in four situations: past, in order, duplicate, future.
// SPDX-License-Identifier: BSD-3-Clause
#include "protocol_bench.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;
using namespace overlap::speculative::bench;

TEST_CASE("Forward stream: in order, past and duplicate") {
  Side side;
  CHECK(side.arrives(eager(0)) == nullptr);
  CHECK(side.unexpected() == 1);
  CHECK(side.arrives(eager(0)) == std::string(seen));
  CHECK(side.arrives(rts(1)) == nullptr);
  CHECK(side.arrives(rts(1)) == std::string(seen));
  CHECK(side.arrives(eager(0)) == std::string(seen));
  CHECK(side.arrives(eager(0xffff)) == std::string(seen));
  CHECK(side.unexpected() == 2);
}

TEST_CASE("Receives that cannot gain are counted by their reason", "[P1.13]") {
  struct Row {
    bool late;
    std::int32_t source, tag;
    std::uint64_t late_receives, wildcard_receives;
  };
  for (const Row& row :
       {Row{true, 1, 5, 1, 0}, Row{true, any_source, 5, 1, 0}, Row{false, any_source, 5, 0, 1},
        Row{false, 1, any_tag, 0, 1}, Row{false, 1, 5, 0, 0}}) {
    CAPTURE(row.late, row.source, row.tag);
    Side side;
    ReceiveOp op;
    op.source = row.source;
    op.tag = row.tag;
    op.capacity_bytes = 1000;
    if (row.late) CHECK(side.arrives(rts(0)) == nullptr);
    REQUIRE(side.protocol.post_receive(side.comm, op) == nullptr);
    if (!row.late) CHECK(side.arrives(rts(0)) == nullptr);
    CHECK(side.counters.late_receives == row.late_receives);
    CHECK(side.counters.wildcard_receives == row.wildcard_receives);
  }
}

TEST_CASE("Forward stream: what comes too early waits for its turn, duplicates of it are refused") {
  Side side;
  CHECK(side.arrives(eager(2, "third")) == nullptr);
  CHECK(side.arrives(rts(1)) == nullptr);
  CHECK(side.arrives(eager(2, "third")) == std::string(seen));
  CHECK(side.unexpected() == 0);
  ReceiveOp first;
  side.post(first, 10, false);
  CHECK(side.arrives(eager(0, "first")) == nullptr);
  CHECK(side.delivered == std::vector<std::string>{"first"});
  CHECK(side.unexpected() == 2);
  CHECK(side.comm.find_unexpected(1, 5)->kind == Kind::rts);
  CHECK(side.comm.peer(1).forward_stash.empty());
}

TEST_CASE("Memory keeps the rail that its description came over while the message waits") {
  Side side;
  const int rail = 0, other = 0;
  SECTION("for its turn") {
    ReceiveOp first;
    side.post(first, 10, false);
    CHECK(side.protocol.on_message(rts(1), &rail) == nullptr);
    CHECK(side.protocol.on_message(eager(0), &other) == nullptr);
    REQUIRE(side.comm.find_unexpected(1, 5) != nullptr);
    CHECK(side.comm.find_unexpected(1, 5)->source_memory.rail == &rail);
  }
  SECTION("for its communicator") {
    RtsHeader early{};
    early.head = head(Kind::rts, 0);
    early.head.context = 9;
    early.send = 1;
    CHECK(side.protocol.on_message(bytes_of(early), &rail) == nullptr);
    Communicator& later =
        side.protocol.add_communicator({.context = 9, .size = 2, .agreed_incarnation = 0});
    CHECK(side.protocol.take_early(later) == nullptr);
    REQUIRE(later.find_unexpected(1, 5) != nullptr);
    CHECK(later.find_unexpected(1, 5)->source_memory.rail == &rail);
  }
}

TEST_CASE(
    "Forward stream: the fast path takes only the next message, and only when nothing waits before "
    "it") {
  Side side;
  ReceiveOp op;
  side.post(op, 10, false);
  ReceiveOp* matched = nullptr;
  CHECK_FALSE(side.protocol.try_match_eager(head(Kind::eager, 1), 1, matched));
  CHECK(matched == nullptr);
  REQUIRE(side.protocol.try_match_eager(head(Kind::eager, 0), 1, matched));
  CHECK(matched == &op);
  CHECK_FALSE(side.protocol.try_match_eager(head(Kind::eager, 1), 1,
                                            matched));  // nothing is posted
  ReceiveOp next;
  side.post(next, 10, false);
  CHECK(side.arrives(eager(2)) == nullptr);  // stashed
  CHECK_FALSE(side.protocol.try_match_eager(head(Kind::eager, 1), 1, matched));
  CHECK(side.arrives(eager(1)) == nullptr);
  CHECK(side.delivered.size() == 1);
  CHECK(side.unexpected() == 1);
}

TEST_CASE("Streams wrap at 2^16 and go on") {
  Side side;
  for (std::uint32_t i = 0; i < 70000; ++i) {
    ReceiveOp op;
    side.post(op, 10, false);
    REQUIRE(side.arrives(eager(static_cast<std::uint16_t>(i))) == nullptr);
    side.taken();
    REQUIRE(side.arrives(rtr(static_cast<std::uint16_t>(i), 1U << 20U)) == nullptr);
  }
  CHECK(side.unexpected() == 0);
  CHECK(side.counters.rtr_stale == 70000);
}

TEST_CASE("Reverse stream: in order, past, duplicate and future") {
  Side side;
  Peer& peer = side.comm.peer(1);
  CHECK(side.arrives(rtr(1, 0, 1)) == nullptr);
  CHECK(peer.kept_rtrs == 0);
  CHECK(side.arrives(rtr(1, 0, 1)) == std::string(seen));
  CHECK(side.arrives(rtr(0, 0, 0)) == nullptr);
  CHECK(peer.kept_rtrs == 2);
  CHECK(side.arrives(rtr(0, 0, 0)) == std::string(seen));
  CHECK(side.arrives(bytes_of(RevokeHeader{head(Kind::revoke, 2)})) == nullptr);
  CHECK(peer.kept_rtrs == 0);
  const auto actions = side.taken();
  REQUIRE(actions.size() == 1);
  CHECK(load<SequencedHeader>(actions[0].message.header).kind_version ==
        kind_version(Kind::revoke_ack));
}

TEST_CASE(
    "An RTR for a message that has been sent already is dropped; one for a later message is kept "
    "(P1.8)") {
  Side side;
  Peer& peer = side.comm.peer(1);
  CHECK(side.arrives(rtr(0, 0, 5)) == nullptr);  // from now on it is remembered what is sent
  CHECK(peer.kept_rtrs == 1);
  (void)side.protocol.eager_header(peer, 5);  // message 0 of the envelope
  (void)side.protocol.eager_header(peer, 6);  // of another one
  CHECK(side.arrives(rtr(1, 0, 0)) == nullptr);
  CHECK(side.counters.rtr_stale == 1);
  CHECK(side.arrives(rtr(2, 0, 1)) == nullptr);
  CHECK(peer.kept_rtrs == 2);
  for (std::uint32_t i = 0; i < history_messages; ++i) (void)side.protocol.eager_header(peer, 6);
  CHECK(side.arrives(rtr(3, 0, 2)) == nullptr);  // counted from further back than is remembered
  CHECK(side.counters.rtr_stale == 2);
}

TEST_CASE("No RTR goes out before the first message of its peer's stream has come") {
  Side side(HazardPolicy::envelope_sequence, false);
  CHECK(side.arrives(rtr(0)) == nullptr);  // names another incarnation than this process's
  CHECK(side.counters.stale_dropped == 1);
  ReceiveOp op;
  side.post(op, 100, true);
  CHECK(side.taken().empty());
  const EraPrefix prefix{kind_version(Kind::era), 0, 0, 3, 1};
  Bytes first = bytes_of(prefix);
  const Bytes message = bytes_of(head(Kind::eager, 0, 9), "x");
  first.insert(first.end(), message.begin(), message.end());
  CHECK(side.arrives(first) == nullptr);
  ReceiveOp next;
  side.post(next, 100, true);
  const auto actions = side.taken();
  REQUIRE(actions.size() == 2);  // the first receive is complete, the second sends its RTR
  CHECK(load<SequencedHeader>(actions[1].message.header).incarnation == 9);
}

TEST_CASE("A targeted message for a request that has ended is dropped, and counted") {
  Side side;
  ReceiveOp op;
  side.post(op, 8, true);
  const Handle handle = op.handle;
  CHECK(side.arrives(eager(0)) == nullptr);
  side.taken();
  CHECK(side.arrives(done_for(handle, true)) == nullptr);
  CHECK(side.arrives(bytes_of(FragHeader{{kind_version(Kind::frag), 0, 0, 0, handle}, 0}, "x")) ==
        nullptr);
  CHECK(side.counters.stale_dropped == 2);
  CHECK(side.taken().empty());
  CHECK(side.delivered.size() == 1);
}

TEST_CASE("knows_sender: a process is known once the host has its endpoint", "[P4.3]") {
  Side side;
  int endpoint = 0;
  const Bytes eager = bytes_of(SequencedHeader{kind_version(Kind::eager), 0, 7, 1, 5, 0, 0});
  CHECK_FALSE(side.protocol.knows_sender(eager));  // past: it has sent and been sent nothing
  CHECK(side.protocol.sender_of(eager) == &side.comm.peer(1));
  CHECK_FALSE(side.protocol.knows_sender(eager));
  side.comm.peer(1).host_data = &endpoint;
  CHECK(side.protocol.sender_of(eager) == &side.comm.peer(1));
  CHECK(side.protocol.knows_sender(eager));
  const Bytes elsewhere = bytes_of(SequencedHeader{kind_version(Kind::eager), 0, 9, 1, 5, 0, 0});
  CHECK_FALSE(side.protocol.knows_sender(elsewhere));  // a communicator that is not made yet
  CHECK(side.protocol.sender_of(elsewhere) == nullptr);
  const Bytes answer = done_for(1, true);
  CHECK(side.protocol.knows_sender(answer));  // to a request of this process
}

TEST_CASE("knows_sender: the first message of a communicator whose context was used before",
          "[P4.3]") {
  Side side(HazardPolicy::envelope_sequence, false);
  int endpoint = 0;
  side.protocol.remove_communicator(side.comm);
  Communicator& next = side.protocol.add_communicator(communicator(false));
  next.peer(1).host_data = &endpoint;
  REQUIRE(next.has_predecessor);
  const SequencedHeader first{kind_version(Kind::eager), 0, 7, 1, 5, 0, 4};
  CHECK(side.protocol.knows_sender(bytes_of(first)));  // the host knows whose rank that is
  next.peer(1).host_data = nullptr;
  CHECK_FALSE(side.protocol.knows_sender(bytes_of(first)));
}
