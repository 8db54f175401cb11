// Message handlers in four situations: past, in order, duplicate, future; and messages that cannot
// be.
// SPDX-License-Identifier: BSD-3-Clause
#include <cstring>
#include <vector>

#include "protocol.hpp"
#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

using Bytes = std::vector<std::byte>;

template <class Header>
Bytes bytes_of(const Header& header, std::string_view payload = {}) {
  Bytes bytes(sizeof header + payload.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  if (!payload.empty()) std::memcpy(bytes.data() + sizeof header, payload.data(), payload.size());
  return bytes;
}

/// Process 0 of two; the test plays process 1.
struct Side final : Host {
  explicit Side(HazardPolicy policy = HazardPolicy::envelope_sequence, bool world = true)
      : protocol(config_for(policy), *this, counters),
        comm(protocol.add_communicator({7, 0, 2, world, true})) {}

  void deliver(ReceiveOp&, std::uint64_t, std::span<const std::byte> payload) override {
    delivered.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
  std::uint64_t process_of(const Communicator&, std::int32_t rank) override {
    return static_cast<std::uint64_t>(rank);
  }
  bool is_ending() const override { return ending; }
  const char* arrives(const Bytes& message) {
    REQUIRE(find_fault(message) == nullptr);
    return protocol.on_message(message);
  }
  void post(ReceiveOp& op, std::uint64_t capacity_bytes, bool speculate) {
    op.source = 1;
    op.tag = 5;
    op.capacity_bytes = capacity_bytes;
    op.speculate = speculate;
    REQUIRE(protocol.post_receive(comm, op) == nullptr);
  }
  /// Actions since the last time.
  std::vector<Action> taken() {
    std::vector<Action> actions = std::move(protocol.actions());
    protocol.actions().clear();
    return actions;
  }
  std::size_t unexpected() const { return comm.unexpected_count; }

  static Config config_for(HazardPolicy policy) {
    Config config;
    config.hazard_policy = policy;
    return config;
  }

  Counters counters;
  Protocol protocol;
  Communicator& comm;
  std::vector<std::string> delivered;
  bool ending = false;
};

SequencedHeader head(Kind kind, std::uint16_t sequence, std::uint16_t incarnation = 0) {
  return {kind_version(kind), 0, 7, 1, 5, sequence, incarnation};
}
Bytes eager(std::uint16_t sequence, std::string_view payload = "x") {
  return bytes_of(head(Kind::eager, sequence), payload);
}
Bytes rts(std::uint16_t sequence, Handle send = 1, std::uint64_t length_bytes = 100) {
  RtsHeader header{};
  header.head = head(Kind::rts, sequence);
  header.length_bytes = length_bytes;
  header.send = send;
  return bytes_of(header);
}
Bytes rtr(std::uint16_t sequence, std::uint32_t base_sequence = 0, std::uint16_t index = 0) {
  RtrHeader header{};
  header.head = head(Kind::rtr, sequence);
  header.capacity_bytes = 1000;
  header.receive = Handle{1} << 32U;
  header.base_sequence = base_sequence;
  header.index = index;
  return bytes_of(header);
}
Bytes done_for(Handle target, bool to_receiver) {
  return bytes_of(TargetedHeader{kind_version(Kind::done),
                                 to_receiver ? flag::to_receiver : std::uint8_t{0}, 0, 0, target});
}

constexpr const char* seen = "a sequence number that has been seen already";

}  // namespace

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
    Communicator& later = side.protocol.add_communicator({9, 0, 2, true, true});
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

TEST_CASE("knows_sender: a process is known once the host has its endpoint", "[P4.3]") {
  Side side;
  int endpoint = 0;
  const Bytes eager = bytes_of(SequencedHeader{kind_version(Kind::eager), 0, 7, 1, 5, 0, 0});
  CHECK_FALSE(side.protocol.knows_sender(eager));  // past: it has sent and been sent nothing
  side.comm.peer(1).host_data = &endpoint;
  CHECK(side.protocol.knows_sender(eager));
  const Bytes elsewhere = bytes_of(SequencedHeader{kind_version(Kind::eager), 0, 9, 1, 5, 0, 0});
  CHECK_FALSE(side.protocol.knows_sender(elsewhere));  // a communicator that is not made yet
  const Bytes answer = done_for(1, true);
  CHECK(side.protocol.knows_sender(answer));  // to a request of this process
}

TEST_CASE("knows_sender: the first message of a communicator whose context was used before",
          "[P4.3]") {
  Side side(HazardPolicy::envelope_sequence, false);
  int endpoint = 0;
  side.protocol.remove_communicator(side.comm);
  Communicator& next = side.protocol.add_communicator({7, 0, 2, false, true});
  next.peer(1).host_data = &endpoint;
  REQUIRE(next.has_predecessor);
  const SequencedHeader first{kind_version(Kind::eager), 0, 7, 1, 5, 0, 4};
  CHECK(side.protocol.knows_sender(bytes_of(first)));  // the host knows whose rank that is
  next.peer(1).host_data = nullptr;
  CHECK_FALSE(side.protocol.knows_sender(bytes_of(first)));
}
