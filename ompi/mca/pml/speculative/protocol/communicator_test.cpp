// Posted and unexpected queues against a naive reference; chains stay short whatever the number of
// tags.
// SPDX-License-Identifier: BSD-3-Clause
#include "communicator.hpp"

#include <deque>
#include <memory>
#include <random>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

constexpr int ranks = 4;
constexpr int tags = 5;

bool takes(const ReceiveOp& op, int source, int tag) {
  return (op.source == any_source || op.source == source) &&
         (op.tag == tag || (op.tag == any_tag && tag >= 0));
}

ArrivedPool pool;

Arrived* arrive(Communicator& comm, int source, int tag) {
  Arrived* message = pool.make(0);
  message->peer = &comm.peer(source);
  message->tag = tag;
  comm.store(*message);
  return message;
}

}  // namespace

TEST_CASE("Matching: posted receives against a naive list, wildcards and negative tags included") {
  std::mt19937 random(11);
  Communicator comm(1, 0, ranks, 0);
  std::deque<ReceiveOp> storage;
  std::vector<ReceiveOp*> reference;
  std::vector<ReceiveOp*> spare;
  for (int i = 0; i < 100000; ++i) {
    const int source = static_cast<int>(random() % ranks);
    const int tag =
        static_cast<int>(random() % tags) - 1;  // -1 as a message's tag is replaced below
    switch (random() % 4) {
      case 0: {
        if (reference.size() > 60) break;
        if (spare.empty()) spare.push_back(&storage.emplace_back());
        ReceiveOp* op = spare.back();
        spare.pop_back();
        op->source = random() % 4 == 0 ? any_source : source;
        op->tag = random() % 4 == 0 ? any_tag : (tag == -1 ? -17 : tag);
        comm.post(*op);
        reference.push_back(op);
        break;
      }
      case 1: {
        if (reference.empty()) break;
        const std::size_t at = random() % reference.size();
        comm.unpost(*reference[at]);
        spare.push_back(reference[at]);
        reference.erase(reference.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      }
      default: {
        const int message_tag = tag == -1 ? -17 : tag;
        ReceiveOp* expected = nullptr;
        bool wildcard = false;
        for (ReceiveOp* op : reference) {
          if (!takes(*op, source, message_tag)) continue;
          if (expected == nullptr) expected = op;
          wildcard = wildcard || op->source == any_source || op->tag == any_tag;
        }
        Peer& peer = comm.peer(source);
        REQUIRE(comm.find_posted(peer, message_tag) == expected);
        REQUIRE(comm.wildcard_matches(peer, message_tag) == wildcard);
        if (expected == nullptr) break;
        comm.unpost(*expected);
        spare.push_back(expected);
        std::erase(reference, expected);
      }
    }
    REQUIRE(comm.posted_count == reference.size());
  }
  for (ReceiveOp* op : reference) comm.unpost(*op);
}

TEST_CASE(
    "Matching: unexpected messages against a naive list, wildcards and negative tags included") {
  std::mt19937 random(12);
  Communicator comm(1, 0, ranks, 0);
  std::vector<Arrived*> reference;
  for (int i = 0; i < 100000; ++i) {
    const int source = static_cast<int>(random() % ranks);
    const int tag = random() % 6 == 0 ? -17 : static_cast<int>(random() % tags);
    if (random() % 2 == 0 && reference.size() < 60) {
      reference.push_back(arrive(comm, source, tag));
      continue;
    }
    const int want_source = random() % 4 == 0 ? any_source : source;
    const int want_tag = random() % 4 == 0 ? any_tag : tag;
    Arrived* expected = nullptr;
    for (Arrived* message : reference) {
      const bool fits = (want_source == any_source || want_source == message->peer->rank) &&
                        (want_tag == message->tag || (want_tag == any_tag && message->tag >= 0));
      if (fits) {
        expected = message;
        break;
      }
    }
    REQUIRE(comm.find_unexpected(want_source, want_tag) == expected);
    if (expected == nullptr) continue;
    comm.take(*expected);
    Arrived::destroy(expected);
    std::erase(reference, expected);
    REQUIRE(comm.unexpected_count == reference.size());
  }
}  // what is left is freed with the communicator

TEST_CASE("Matching: 10,000 distinct tags make no long chains, posted or unexpected") {
  constexpr int many = 10000;
  for (const int stride : {1, 2, 64, 1000, 4096, 65536}) {
    CAPTURE(stride);
    Communicator comm(1, 0, 1, 0);
    Peer& peer = comm.peer(0);
    std::vector<ReceiveOp> ops(many);
    for (int i = 0; i < many; ++i) {
      ops[static_cast<std::size_t>(i)].source = 0;
      ops[static_cast<std::size_t>(i)].tag = i * stride;
      comm.post(ops[static_cast<std::size_t>(i)]);
    }
    // How many elements a search looks at: those before the sought one in its chain.
    std::uint64_t looked_at = 0;
    std::size_t longest = 0;
    for (ReceiveOp& op : ops) {
      auto& chain = peer.posted.chain(op.tag);
      std::size_t steps = 1;
      for (ReceiveOp* item = chain.front(); item != &op; item = chain.after(*item)) ++steps;
      looked_at += steps;
      longest = std::max(longest, steps);
      REQUIRE(comm.find_posted(peer, op.tag) == &op);
    }
    CHECK(looked_at < 4 * std::uint64_t{many});
    CHECK(longest <= 32);
    for (ReceiveOp& op : ops) comm.unpost(op);
    for (int i = 0; i < many; ++i) arrive(comm, 0, i * stride);
    for (int i = many - 1; i >= 0; --i) {
      auto& chain = peer.unexpected.chain(i * stride);
      std::size_t length = 0;
      for (Arrived* item = chain.front(); item != nullptr; item = chain.after(*item)) ++length;
      REQUIRE(length <= 32);
      Arrived* found = comm.find_unexpected(0, i * stride);
      REQUIRE(found != nullptr);
      comm.take(*found);
      Arrived::destroy(found);
    }
  }
}

TEST_CASE("Matching: equal tags stay in order when the table grows") {
  TagTable<ReceiveOp, &ReceiveOp::link, &ReceiveOp::tag> table;
  std::vector<ReceiveOp> ops(1000);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].tag = static_cast<std::int32_t>(i % 10);
    ops[i].order = i;
    table.insert(ops[i]);
  }
  for (std::int32_t tag = 0; tag < 10; ++tag) {
    std::uint64_t expected = static_cast<std::uint64_t>(tag);
    for (ReceiveOp* op = table.find(tag); op != nullptr; op = table.find_after(*op)) {
      REQUIRE(op->order == expected);
      if (expected >= 10) REQUIRE(table.find_before(*op)->order == expected - 10);
      expected += 10;
    }
    CHECK(expected == 1000 + static_cast<std::uint64_t>(tag));
  }
}
