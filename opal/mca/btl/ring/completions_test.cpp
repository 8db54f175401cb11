// Completion queues: room for queue pairs, and batches that handlers may continue.
// SPDX-License-Identifier: BSD-3-Clause
#include "completions.hpp"

#include <vector>

#include "sim/fake_device.hpp"
#include "test/support/catch.hpp"

using namespace overlap;
using namespace overlap::ring;

namespace {

struct Setting {
  sim::FakeDevice device;
  sim::FakeReclaim kept{device};
  Completions completions{device, kept, 8, 16};
  sim::FakeReceiveQueue receives{device};
  std::vector<QueuePairPointer> pairs;

  Setting() { device.able.completion_queue_max = 1U << 20U; }
  void make(std::size_t count) {
    for (; count > 0; --count) pairs.push_back(completions.make_queue_pair(receives, 0));
  }
  void complete(std::size_t queue, std::uint64_t id) {
    fabric::Completion completion;
    completion.id = id;
    device.queues[queue]->waiting.push_back(completion);
  }
  /// All that is there, in the order in which it was taken.
  std::vector<std::uint64_t> take() {
    std::vector<std::uint64_t> ids;
    fabric::Completion next;
    while (completions.try_fill()) {
      while (completions.try_next(next)) ids.push_back(next.id);
    }
    return ids;
  }
};

}  // namespace

TEST_CASE("Completions: a queue is made when the others have no room, its room comes back") {
  Setting at;
  CHECK(!at.completions.try_fill());  // no queue at all
  at.make(16);
  REQUIRE(at.device.queues.size() == 1);
  CHECK(at.device.queues[0]->entries == 16 + 16 * 8);
  at.make(1);
  REQUIRE(at.device.queues.size() == 2);
  CHECK(at.device.queues[1]->entries == 16 + 32 * 8);
  at.pairs.erase(at.pairs.begin());
  at.make(1);
  CHECK(at.pairs.back().get_deleter().group == at.pairs.front().get_deleter().group);
  at.make(31);
  CHECK(at.device.queues.size() == 2);
}

TEST_CASE("Completions: a refused queue pair leaves its room to the next one") {
  Setting at;
  at.make(15);
  at.device.queue_pairs_refused = fabric::Error::Kind::system;
  for (int i = 0; i < 5; ++i) CHECK_THROWS_AS(at.make(1), fabric::Error);
  at.device.queue_pairs_refused.reset();
  at.make(1);
  CHECK(at.device.queues.size() == 1);
}

TEST_CASE("Completions: registrations that are only kept make room for queue pairs") {
  Setting at;
  at.kept.kept = 3;
  at.device.queue_pairs_refused = fabric::Error::Kind::memory_limit;
  at.make(1);
  CHECK(at.kept.kept == 0);
  at.device.queue_pairs_refused = fabric::Error::Kind::memory_limit;
  CHECK_THROWS_AS(at.make(1), fabric::Error);  // none is kept any more
}

TEST_CASE("Completions: registrations are kept where memory is not what queue pairs want") {
  Setting at;
  at.kept.kept = 3;
  at.device.queue_pairs_refused = fabric::Error::Kind::system;
  CHECK_THROWS_AS(at.make(1), fabric::Error);
  CHECK(at.kept.kept == 3);
}

TEST_CASE("Completions: queues are polled in turn") {
  Setting at;
  at.make(17);
  for (std::uint64_t i = 0; i < 40; ++i) at.complete(i % 2, i);
  fabric::Completion next;
  REQUIRE(at.completions.try_fill());
  REQUIRE(at.completions.try_next(next));
  CHECK(next.id == 0);
  while (at.completions.try_next(next)) {}
  REQUIRE(at.completions.try_fill());
  REQUIRE(at.completions.try_next(next));
  CHECK(next.id == 1);
  while (at.completions.try_next(next)) {}
  CHECK(at.take() == std::vector<std::uint64_t>{32, 34, 36, 38, 33, 35, 37, 39});
}

TEST_CASE("Completions: who takes one in the middle of a batch gets the next of it") {
  Setting at;
  at.make(1);
  for (std::uint64_t i = 0; i < 3; ++i) at.complete(0, i);
  fabric::Completion next;
  REQUIRE(at.completions.try_fill());
  REQUIRE(at.completions.try_next(next));
  at.complete(0, 3);
  const int polls = at.device.queues[0]->polls;
  REQUIRE(at.completions.try_fill());  // the handler's
  CHECK(at.device.queues[0]->polls == polls);
  REQUIRE(at.completions.try_next(next));
  CHECK(next.id == 1);
  CHECK(at.take() == std::vector<std::uint64_t>{2, 3});
}
