// Failed requests that are handled later: when it is known why their peer is lost.
// SPDX-License-Identifier: BSD-3-Clause
#include "deferred_failures.hpp"

#include <array>
#include <map>
#include <random>
#include <stdexcept>
#include <vector>

#include "protocol/ending.hpp"

#include "test/support/catch.hpp"

using namespace overlap;
using namespace overlap::ring;
using fabric::CompletionStatus;

namespace {

using Ids = std::vector<std::uint64_t>;

/// A process with peers, one queue pair each: number n is that of peer n.
struct Process {
  explicit Process(std::uint32_t count) : peers(count) {}

  void fail(std::uint32_t peer, std::uint64_t id,
            CompletionStatus status = CompletionStatus::flushed) {
    fabric::Completion failure;
    failure.id = id;
    failure.status = status;
    failure.queue_pair_number = peer;
    failures.put(failure, now);
  }
  /// What may be handled now, and what that tells of the peers.
  Ids handle() {
    const auto awaits_reason = [this](const fabric::Completion& failure) {
      return failure.status == CompletionStatus::flushed &&
             peers[failure.queue_pair_number].unexplained();
    };
    Ids ids;
    while (const auto failure = failures.take(now, awaits_reason)) {
      ids.push_back(failure->id);
      Ending& peer = peers[failure->queue_pair_number];
      const bool flushed = failure->status == CompletionStatus::flushed;
      if ((!flushed || peer.unexplained()) &&
          peer.take(EndingEvent::loss_known) == EndingAction::report_lost)
        reported.push_back(failure->queue_pair_number);
    }
    return ids;
  }
  void pass(std::chrono::milliseconds time) { now += time; }

  std::vector<Ending> peers;
  DeferredFailures failures;
  DeferredFailures::Time now{};
  std::vector<std::uint32_t> reported;  ///< by a failure, without an event
};

constexpr std::chrono::milliseconds longest = DeferredFailures::longest;
constexpr std::chrono::milliseconds moment(1);

}  // namespace

TEST_CASE("Deferred failures come in their order, once nobody holds them") {
  Process process(1);
  process.peers[0].take(EndingEvent::goodbye_seen);
  CHECK_FALSE(process.failures.held());
  {
    const DeferredFailures::Hold outer(process.failures);
    process.fail(0, 1);
    {
      const DeferredFailures::Hold inner(process.failures);
      process.fail(0, 2);
    }
    CHECK(process.failures.held());
    process.pass(longest + moment);
    CHECK(process.handle().empty());
    process.fail(0, 3);
  }
  CHECK(process.handle() == Ids{1, 2, 3});
  CHECK(process.failures.empty());
  CHECK(process.handle().empty());
}

TEST_CASE("Deferred failures are not held any more after something was thrown") {
  Process process(1);
  process.peers[0].take(EndingEvent::goodbye_seen);
  try {
    const DeferredFailures::Hold hold(process.failures);
    process.fail(0, 1);
    throw std::runtime_error("no memory");
  } catch (const std::runtime_error&) {}
  CHECK(process.handle() == Ids{1});
}

TEST_CASE("Deferred failures: flushed requests wait for the event that tells why") {
  Process process(1);
  process.fail(0, 1);
  process.fail(0, 2);
  process.pass(longest);
  CHECK(process.handle().empty());
  CHECK_FALSE(process.failures.empty());
  SECTION("it comes: nothing else is reported") {
    process.peers[0].take(EndingEvent::loss_known);
    CHECK(process.handle() == Ids{1, 2});
    CHECK(process.reported.empty());
  }
  SECTION("the peer's goodbye comes") {
    process.peers[0].take(EndingEvent::goodbye_seen);
    CHECK(process.handle() == Ids{1, 2});
    CHECK(process.reported.empty());
  }
  SECTION("the peer is given up") {
    process.peers[0].take(EndingEvent::released);
    CHECK(process.handle() == Ids{1, 2});
    CHECK(process.reported.empty());
  }
  SECTION("it does not come: reported once, after the longest wait") {
    process.pass(moment);
    CHECK(process.handle() == Ids{1, 2});
    CHECK(process.reported == std::vector<std::uint32_t>{0});
  }
}

TEST_CASE("Deferred failures: one that has a reason explains those flushed before it") {
  Process process(1);
  process.fail(0, 1);  // of the other queue pair, perhaps
  process.fail(0, 2, CompletionStatus::retry_exceeded);
  process.fail(0, 3);
  CHECK(process.handle() == Ids{2, 1, 3});
  CHECK(process.reported == std::vector<std::uint32_t>{0});
}

TEST_CASE("Deferred failures: a peer whose reason is late does not hold others up") {
  Process process(3);
  process.fail(0, 1);
  process.fail(1, 2, CompletionStatus::remote_error);
  process.fail(2, 3);
  process.peers[2].take(EndingEvent::part_called);
  CHECK(process.handle() == Ids{2, 3});
  process.peers[0].take(EndingEvent::loss_known);
  CHECK(process.handle() == Ids{1});
}

TEST_CASE("Deferred failures: many peers that are lost at once wait together") {
  constexpr std::uint32_t count = 1000;
  Process process(count);
  Ids all;
  for (std::uint32_t peer = 0; peer < count; ++peer) {
    process.fail(peer, peer);
    all.push_back(peer);
  }
  process.pass(longest);
  CHECK(process.handle().empty());
  process.pass(moment);
  CHECK(process.handle() == all);
  CHECK(process.reported.size() == count);
}

TEST_CASE("Deferred failures: each comes once, in the order of its peer, not before its reason") {
  std::mt19937 random(1);
  for (int walk = 0; walk < 500; ++walk) {
    constexpr std::uint32_t peers = 3;
    Process process(peers);
    struct Put {
      std::uint32_t peer;
      DeferredFailures::Time since;
    };
    std::map<std::uint64_t, Put> waiting;
    std::array<std::uint64_t, peers> last{};
    std::uint64_t id = 0;
    for (int i = 0; i < 60; ++i) {
      const std::uint32_t peer = random() % peers;
      switch (random() % 4) {
        case 0:
          process.fail(peer, ++id);
          waiting[id] = {peer, process.now};
          break;
        case 1: process.pass(std::chrono::milliseconds(random() % 400)); break;
        case 2:
          if (random() % 8 == 0) process.peers[peer].take(EndingEvent::loss_known);
          break;
        default: {
          const std::vector<Ending> before = process.peers;
          std::array<bool, peers> overdue{};
          for (const auto& [key, put] : waiting)
            overdue[put.peer] = overdue[put.peer] || process.now - put.since > longest;
          for (const std::uint64_t got : process.handle()) {
            REQUIRE(waiting.count(got) == 1);
            const std::uint32_t of = waiting[got].peer;
            REQUIRE((overdue[of] || !before[of].unexplained()));
            REQUIRE(last[of] < got);
            last[of] = got;
            waiting.erase(got);
          }
          for (const auto& [key, put] : waiting) REQUIRE(process.now - put.since <= longest);
        }
      }
    }
  }
}
