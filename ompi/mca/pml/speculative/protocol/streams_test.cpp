// Identity of streams: fresh, stale and early messages, in the orders in which they can come.
// SPDX-License-Identifier: BSD-3-Clause
#include "streams.hpp"

#include <cstring>
#include <vector>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

using Bytes = std::vector<std::byte>;
using Verdict = Streams::Verdict;

constexpr std::uint16_t context = 7;

/// Process 0; the test plays the others. Process 1 is rank 1, unless `ranks` says otherwise.
struct Side final : Host {
  explicit Side(HeldBound bound = {}, std::uint32_t first_agreed = first_agreed_context)
      : streams(*this, 0, true, bound, first_agreed) {}
  void deliver(ReceiveOp&, std::uint64_t, std::span<const std::byte>) override {}
  std::uint64_t process_of(const Communicator&, std::int32_t rank) override {
    return ranks[static_cast<std::size_t>(rank)];
  }

  Communicator& add(bool agreed_by_messages = true, std::size_t size = 2) {
    return streams.add(
        {.context = context, .size = size, .agreed_by_messages = agreed_by_messages});
  }
  Communicator& add_agreed(std::uint16_t number, std::uint16_t incarnation) {
    return streams.add({.context = number, .size = 2, .agreed_incarnation = incarnation});
  }
  /// A forward message. @param era  0: without prefix
  Streams::Admission arrives(std::uint16_t incarnation, std::uint32_t era = 0,
                             std::uint64_t process = 1, std::int32_t source = 1,
                             Kind kind = Kind::eager, std::uint16_t number = context) {
    const SequencedHeader head{kind_version(kind), 0, number, source, 5, 0, incarnation};
    const EraPrefix prefix{kind_version(Kind::era), 0, 0, era, process};
    Bytes bytes(sizeof prefix + sizeof head);
    std::memcpy(bytes.data(), &prefix, sizeof prefix);
    std::memcpy(bytes.data() + sizeof prefix, &head, sizeof head);
    const std::span<const std::byte> whole(bytes);
    return streams.admit(head, era == 0 ? nullptr : &prefix,
                         {era == 0 ? whole.subspan(sizeof prefix) : whole});
  }

  std::vector<std::uint64_t> ranks{0, 1, 2};
  Streams streams;
};

}  // namespace

TEST_CASE("Streams: the first message binds, others of its incarnation pass, the rest is stale") {
  Side side;
  Communicator& comm = side.add();
  CHECK(side.arrives(4, 1).verdict == Verdict::bound);
  CHECK(comm.peer(1).bound == 4);
  CHECK(side.arrives(4).verdict == Verdict::pass);
  CHECK(side.arrives(4, 9).verdict == Verdict::pass);
  CHECK(side.arrives(5, 9).verdict == Verdict::stale);
  CHECK(side.arrives(5).verdict == Verdict::stale);
}

TEST_CASE("Streams: a later message that overtakes the first one is held until that has come") {
  Side side;
  side.add();
  CHECK(side.arrives(4).verdict == Verdict::held);
  CHECK(side.arrives(3).verdict == Verdict::held);
  const auto first = side.arrives(4, 1);
  CHECK(first.verdict == Verdict::bound);
  CHECK(first.dropped == 1);  // the other incarnation's
  CHECK(side.streams.take_held({context, 4, 1}).size() == 1);
  CHECK(side.streams.held() == 0);
}

TEST_CASE("Streams: a first message older than the communicator is of its predecessor") {
  Side side;
  side.streams.remove(side.add());
  CHECK(side.arrives(4).verdict == Verdict::held);  // who knows
  Communicator& comm = side.add();
  CHECK(comm.birth == 2);
  const auto old = side.arrives(4, 1);
  CHECK(old.verdict == Verdict::stale);
  CHECK(side.arrives(4).verdict == Verdict::stale);  // known dead now
  CHECK(side.arrives(5).verdict == Verdict::held);
  CHECK(side.arrives(5, 2).verdict == Verdict::bound);
}

TEST_CASE("Streams: a first message of another process at this rank is of a predecessor") {
  Side side;
  side.ranks = {0, 2};  // in the first communicator it was process 1
  side.streams.remove(side.add());
  side.add();
  CHECK(side.arrives(4, 100, 1).verdict == Verdict::stale);  // its era is ahead of this process's
  CHECK(side.streams.era() == 100);
  CHECK(side.arrives(4, 100, 2).verdict == Verdict::bound);  // by chance the same number
}

TEST_CASE(
    "Streams: where eras have not travelled, or none had the context before, they say nothing") {
  Side side;
  for (int i = 0; i < 5; ++i)
    side.streams.add({.context = static_cast<std::uint16_t>(20 + i), .size = 1});
  Communicator& first = side.add();
  CHECK(side.arrives(4, 1).verdict == Verdict::bound);  // birth 6, but there was none before
  side.streams.remove(first);
  side.add(false);
  CHECK(side.arrives(4).verdict == Verdict::stale);
  CHECK(side.arrives(5, 1).verdict == Verdict::bound);
}

TEST_CASE("Streams: MPI_COMM_WORLD is bound from the start and never followed by another") {
  Side side;
  CHECK(side.arrives(0, 1).verdict == Verdict::held);
  CHECK(side.arrives(0, 0, 1, 1, Kind::rtr).verdict == Verdict::held);  // its incarnation is known
  Communicator& world = side.add_agreed(context, 0);
  CHECK(side.streams.take_held(world).size() == 2);
  CHECK(side.arrives(0).verdict == Verdict::pass);
  side.streams.remove(world);
  CHECK(side.arrives(0).verdict == Verdict::stale);
}

TEST_CASE("Streams: those of a communicator with an agreed incarnation are bound from the start") {
  constexpr std::uint16_t number = first_agreed_context + 5;
  Side side;
  const auto arrives = [&side](std::uint16_t incarnation, Kind kind = Kind::eager) {
    return side.arrives(incarnation, 0, 1, 1, kind, number).verdict;
  };
  CHECK(arrives(3) == Verdict::held);
  CHECK(arrives(3, Kind::rtr) == Verdict::held);  // a peer that has it already asks
  Communicator* comm = &side.add_agreed(number, 3);
  CHECK(comm->peer(1).bound == 3);
  CHECK(side.streams.take_held(*comm).size() == 2);
  CHECK(arrives(3) == Verdict::pass);  // though no first message has come
  CHECK(arrives(3, Kind::revoke) == Verdict::pass);
  CHECK(arrives(2) == Verdict::held);  // another one's, that is still to come
  side.streams.remove(*comm);
  CHECK(arrives(3) == Verdict::stale);
  CHECK(arrives(3, Kind::stream_end) == Verdict::stale);
  CHECK(arrives(3, Kind::rtr) == Verdict::stale);
  CHECK(arrives(2, Kind::rtr) == Verdict::held);  // whichever way the numbers go
  comm = &side.add_agreed(number, 2);
  CHECK(side.streams.take_held(*comm).size() == 2);
  CHECK(arrives(2) == Verdict::pass);
  CHECK(arrives(3) == Verdict::stale);
}

TEST_CASE("Streams: where a communicator has no RTRs no peer speculates, whatever it says") {
  Side side;
  Communicator& comm = side.streams.add({.context = context, .size = 2, .speculates = false});
  CHECK_FALSE(comm.peer(1).speculates);
  CHECK((side.streams.announce(comm.peer(1)).flags & flag::speculation_off) != 0);
  CHECK(side.arrives(4, 1).verdict == Verdict::bound);
  CHECK_FALSE(comm.peer(1).speculates);
  CHECK(side.arrives(4, 2).verdict == Verdict::pass);
  CHECK_FALSE(comm.peer(1).speculates);
}

TEST_CASE("Streams: communicators with agreed incarnations may have the same context") {
  constexpr std::uint16_t number = first_agreed_context + 5;
  Side side;
  const auto arrives = [&side](std::uint16_t incarnation) {
    return side.arrives(incarnation, 0, 1, 1, Kind::eager, number);
  };
  Communicator& old = side.add_agreed(number, 3);
  CHECK(arrives(2).verdict == Verdict::held);
  side.streams.remove(old);  // nothing of the other one goes with it
  Communicator* const kept = &side.add_agreed(number, 4);
  Communicator* const next = &side.add_agreed(number, 2);
  CHECK(side.streams.take_held(*next).size() == 1);
  CHECK(arrives(2).peer->comm == next);
  CHECK(arrives(4).peer->comm == kept);
  side.streams.remove(*next);
  CHECK(arrives(2).verdict == Verdict::stale);
  CHECK(arrives(4).peer->comm == kept);
  CHECK(side.streams.find_agreed(number, 2) == nullptr);
  CHECK(side.streams.find_agreed(number, 4) == kept);
}

TEST_CASE("Streams: where there are no agreed contexts, high ones are like others") {
  Side side({}, UINT16_MAX + 1U);
  const auto arrives = [&side](Kind kind) {
    return side.arrives(4, 0, 1, 1, kind, 0xfff0).verdict;
  };
  CHECK(arrives(Kind::rtr) == Verdict::stale);
  Communicator& comm = side.streams.add({.context = 0xfff0, .size = 2});
  CHECK(arrives(Kind::eager) == Verdict::held);
  side.streams.remove(comm);
  CHECK(arrives(Kind::stream_end) == Verdict::stale);
  CHECK(side.streams.held() == 0);
}

TEST_CASE("Streams: an agreed incarnation takes no number of the others'") {
  Side side;
  const std::uint16_t first = side.add().incarnation;
  side.add_agreed(first_agreed_context, 9);
  side.streams.remove(*side.streams.find(context));
  CHECK(side.add().incarnation == static_cast<std::uint16_t>(first + 1));
}

TEST_CASE("Streams: a rank outside the communicator is stale where a larger one came before") {
  Side side;
  side.add(true, 3);
  CHECK(side.arrives(4, 1, 5, 3).verdict == Verdict::fault);
  side.streams.remove(*side.streams.find(context));
  side.add(true, 2);
  CHECK(side.arrives(4, 1, 2, 2).verdict == Verdict::stale);
}

TEST_CASE("Streams: reverse messages name this process's incarnation") {
  Side side;
  CHECK(side.arrives(4, 0, 1, 1, Kind::rtr).verdict == Verdict::stale);
  Communicator& comm = side.add();
  CHECK(side.arrives(comm.incarnation, 0, 1, 1, Kind::rtr).verdict == Verdict::pass);
  CHECK(
      side.arrives(static_cast<std::uint16_t>(comm.incarnation + 1), 0, 1, 1, Kind::rtr).verdict ==
      Verdict::stale);
  CHECK(side.arrives(comm.incarnation, 0, 1, 2, Kind::revoke).verdict == Verdict::fault);
}

TEST_CASE("Streams: early messages are bounded; those that are probably stale make room") {
  Side side({.messages_max = 3, .bytes_max = 1000});
  side.streams.remove(side.add());
  CHECK(side.arrives(4).verdict == Verdict::held);
  CHECK(side.arrives(4).verdict == Verdict::held);
  CHECK(side.arrives(5).verdict == Verdict::held);
  const auto fourth = side.arrives(5);
  CHECK(fourth.verdict == Verdict::held);
  CHECK(fourth.dropped == 1);
  CHECK(side.streams.held() == 3);
  const auto end = side.arrives(5, 0, 1, 1, Kind::stream_end);
  CHECK(end.verdict == Verdict::stale);
  CHECK(end.dropped == 2);
  CHECK(side.streams.held() == 1);
  Side fresh({.messages_max = 1, .bytes_max = 1000});
  CHECK(fresh.arrives(4, 1).verdict == Verdict::held);
  CHECK(fresh.arrives(4).verdict == Verdict::fault);  // nothing of it may be thrown away
}

TEST_CASE("Streams: an era that came beside them is as good as one of their own messages") {
  Side side;
  side.streams.remove(side.add());
  side.streams.note_era(40);
  CHECK(side.streams.era() == 40);
  side.streams.note_era(7);  // an older one
  CHECK(side.streams.era() == 40);
  const Communicator& next = side.add();
  CHECK(next.birth == 41);
  CHECK(side.arrives(4, 40).verdict == Verdict::stale);  // its sender had left the first one
  CHECK(side.arrives(5, 41).verdict == Verdict::bound);
}

TEST_CASE("Streams: each peer is told the era once, and again when it has grown") {
  Side side;
  Communicator& comm = side.add();
  Peer& peer = comm.peer(1);
  CHECK(side.streams.must_announce(peer));
  const EraPrefix prefix = side.streams.announce(peer);
  CHECK(prefix.era == 1);
  CHECK_FALSE(side.streams.must_announce(peer));
  CHECK(side.arrives(4, 8).verdict == Verdict::bound);
  CHECK(side.streams.era() == 8);
  CHECK(side.streams.must_announce(peer));
}
