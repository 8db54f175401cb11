// Pools of registered buffers, and the count of what is registered.
// SPDX-License-Identifier: BSD-3-Clause
#include "peer_buffers.hpp"

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "sim/fake_device.hpp"
#include "test/support/catch.hpp"

using namespace overlap;
using namespace overlap::ring;

namespace {

struct Setting {
  sim::FakeDevice device;
  std::uint64_t max_bytes = 0;
  sim::FakeReclaim kept{device};
  RegisteredMemory memory{device, kept, max_bytes, sim::throw_refused};
};
constexpr BufferPoolShape shape{.buffers = 4, .buffer_bytes = 64, .rights = 0, .what = "tests"};

}  // namespace

TEST_CASE("BufferPool: nothing is registered before the first buffer is taken") {
  Setting at;
  {
    BufferPool pool(at.memory, shape);
    CHECK(at.device.registered.empty());
    REQUIRE(pool.try_take());
    CHECK(at.device.registered.size() == 1);
    CHECK(at.device.registered.count(pool.local_key(0)) == 1);
    CHECK(at.memory.bytes() == 256);
  }
  CHECK(at.device.registered.empty());
  CHECK(at.memory.bytes() == 0);
  CHECK(at.max_bytes == 256);
}

TEST_CASE("BufferPool: each buffer is taken by one at a time") {
  Setting at;
  BufferPool pool(at.memory, shape);
  std::set<std::byte*> taken;
  for (int i = 0; i < 4; ++i) {
    const auto index = pool.try_take();
    REQUIRE(index);
    CHECK(*index < 4);
    CHECK(taken.insert(pool.at(*index)).second);
  }
  CHECK(!pool.try_take());
  CHECK(*taken.rbegin() - *taken.begin() == 3 * 64);
  pool.give_back(2);
  CHECK(pool.try_take() == 2U);
  CHECK(!pool.try_take());
  CHECK(at.device.registered.size() == 1);
}

TEST_CASE("BufferPool: a device that refuses its memory is reported, and asked again later") {
  Setting at;
  at.device.registrations_allowed = 0;
  BufferPool pool(at.memory, shape);
  CHECK_THROWS_AS(pool.try_take(), sim::Refused);
  CHECK(at.memory.bytes() == 0);
  at.device.registrations_allowed = 1;
  CHECK(pool.try_take() == 0U);
}

TEST_CASE("BufferPool: each block has its own memory, key and rights, and all are given back") {
  Setting at;
  {
    BufferPool pool(
        at.memory,
        {.buffers = 4, .buffer_bytes = 64, .rights = fabric::access::local_write, .what = "tests"});
    std::set<std::uint32_t> keys;
    for (std::uint32_t block = 0; block < 5; ++block) {
      if (block > 0) REQUIRE(pool.try_grow());
      for (std::uint32_t i = 0; i < 4; ++i) {
        const auto index = pool.try_take();
        REQUIRE(index);
        const fabric::MemoryRegion& region = at.device.regions.at(pool.local_key(*index));
        const std::byte* const first = static_cast<std::byte*>(region.address);
        CHECK(pool.at(*index) >= first);
        CHECK(pool.at(*index) + 64 <= first + region.bytes);
        CHECK(at.device.rights.at(region.local_key) == fabric::access::local_write);
        keys.insert(region.local_key);
      }
      CHECK(keys.size() == block + 1);
    }
    for (std::uint32_t index = 0; index < 20; ++index) pool.give_back(index);
    for (int i = 0; i < 20; ++i) CHECK(pool.try_take());
  }
  CHECK(at.device.registered.empty());
  CHECK(at.memory.bytes() == 0);
}

namespace {

constexpr BufferPoolShape large{.buffers = 32, .buffer_bytes = 64, .rights = 0, .what = "tests"};
constexpr unsigned share = 4;  // of 32
std::uint64_t stopped_ns() noexcept { return 1; }

/// As many as there are at once for a peer that takes no messages.
unsigned take_all(PeerBuffers& buffers, std::uint32_t peer) {
  unsigned taken = 0;
  while (buffers.try_take(peer)) ++taken;
  return taken;
}

/// It tries in each pass, and nobody gives any back.
std::optional<std::uint32_t> take_waiting(PeerBuffers& buffers, std::uint32_t peer) {
  constexpr std::uint64_t passes =
      BufferShortage::patience_refused * BufferShortage::patience_passes;
  for (std::uint64_t pass = 0; pass <= passes; ++pass) {
    if (const auto index = buffers.try_take(peer)) return index;
    buffers.note_pass();
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("PeerBuffers: peers that take no messages leave buffers to the others") {
  Setting at;
  PeerBuffers buffers(at.memory, large, stopped_ns);
  std::set<std::byte*> taken;
  for (std::uint32_t peer = 0; peer < 40; ++peer) {
    for (unsigned i = 0; i < share; ++i) {
      const auto index = take_waiting(buffers, peer);
      REQUIRE(index);
      CHECK(taken.insert(buffers.at(*index)).second);
    }
    // Beyond its share the first one has what was left of a block, and nobody else anything.
    CHECK(take_all(buffers, peer) == (peer == 0 ? large.buffers - share : 0));
    CHECK_FALSE(take_waiting(buffers, peer));
  }
  CHECK(at.device.registered.size() == 1 + (39 * share + large.buffers - 1) / large.buffers);
}

TEST_CASE("PeerBuffers: one peer has no more than there were at first") {
  Setting at;
  PeerBuffers buffers(at.memory, large, stopped_ns);
  CHECK(take_all(buffers, 7) == large.buffers);
  CHECK_FALSE(take_waiting(buffers, 7));
  CHECK(at.device.registered.size() == 1);
  REQUIRE(take_waiting(buffers, 3));
  CHECK_FALSE(buffers.try_take(7));
  buffers.give_back(2);
  CHECK(buffers.try_take(7));
  // Two that have more than their shares share the rest of a block.
  for (std::uint32_t index = 0; index < 2; ++index) buffers.give_back(index);
  CHECK(take_all(buffers, 3) == share - 1 + 2);
  CHECK_FALSE(take_waiting(buffers, 7));
}

TEST_CASE("PeerBuffers: who has its share waits for others' and has none made") {
  Setting at;
  PeerBuffers buffers(at.memory, large, stopped_ns);
  for (std::uint32_t taken = 0; taken < large.buffers; ++taken)
    REQUIRE(buffers.try_take(taken / share));
  CHECK_FALSE(take_waiting(buffers, 0));
  CHECK(at.device.registered.size() == 1);
  buffers.give_back(large.buffers - 1);
  CHECK(buffers.try_take(0));
}

TEST_CASE("PeerBuffers: none are made while those that there are come back") {
  Setting at;
  PeerBuffers buffers(at.memory, large, stopped_ns);
  for (int round = 0; round < 1000; ++round) {
    std::vector<std::uint32_t> taken;
    for (std::uint32_t peer = 0; peer < 100; ++peer) {
      if (const auto index = buffers.try_take(peer)) taken.push_back(*index);
    }
    CHECK(taken.size() == large.buffers);
    buffers.note_pass();
    for (const std::uint32_t index : taken) buffers.give_back(index);
  }
  CHECK(at.device.registered.size() == 1);
}

TEST_CASE("PeerBuffers: without memory for more a peer waits for one of the others'") {
  Setting at;
  at.device.registrations_allowed = 1;
  PeerBuffers buffers(at.memory, shape, stopped_ns);
  CHECK(take_all(buffers, 0) == 4);
  CHECK_FALSE(take_waiting(buffers, 1));
  CHECK(at.device.refusals == 1);
  CHECK_FALSE(take_waiting(buffers, 1));
  CHECK(at.device.refusals <= 3);
  buffers.give_back(0);
  CHECK(buffers.try_take(1) == 0U);
  at.device.registrations_allowed = 1;
  CHECK(take_waiting(buffers, 2) == 4U);
}

TEST_CASE("PeerBuffers: a program that computes between its passes waits no longer than others") {
  static std::uint64_t now_ns;
  now_ns = 1;
  Setting at;
  PeerBuffers buffers(at.memory, large, []() noexcept { return now_ns; });
  CHECK(take_all(buffers, 0) == large.buffers);
  std::uint64_t passes = 0;
  for (; !buffers.try_take(1) && passes < 1000; ++passes) {
    buffers.note_pass();
    now_ns += 10 * BufferShortage::patience_ns;
  }
  CHECK(passes == BufferShortage::least_passes);
}

TEST_CASE("PeerBuffers: random peers take and give back, and the account holds") {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    INFO("seed " << seed);
    std::mt19937 random(seed);
    const auto any = [&random](std::size_t n) { return random() % n; };
    Setting at;
    PeerBuffers buffers(at.memory, large, stopped_ns);
    constexpr std::uint32_t peers = 20;
    std::vector<std::vector<std::uint32_t>> held(peers);
    for (int step = 0; step < 3000; ++step) {
      const auto peer = static_cast<std::uint32_t>(any(peers));
      if (any(3) != 0) {
        if (const auto index = buffers.try_take(peer)) held[peer].push_back(*index);
        for (std::uint64_t i = any(300); i > 0; --i) buffers.note_pass();
      } else if (!held[peer].empty()) {
        std::swap(held[peer][any(held[peer].size())], held[peer].back());
        buffers.give_back(held[peer].back());
        held[peer].pop_back();
      }
      std::set<std::uint32_t> all;
      std::size_t count = 0, beyond = 0;
      for (const auto& each : held) {
        all.insert(each.begin(), each.end());
        count += each.size();
        if (each.size() > share) beyond += each.size() - share;
      }
      REQUIRE(all.size() == count);  // nobody has another one's
      REQUIRE(beyond <= large.buffers - share);
    }
    for (auto& each : held) {
      for (const std::uint32_t index : each) buffers.give_back(index);
    }
    // One peer gets a block, and the next one its share: nothing was lost.
    CHECK(take_all(buffers, 0) == large.buffers);
    for (unsigned i = 0; i < share; ++i) CHECK(take_waiting(buffers, 1));
    CHECK_FALSE(take_waiting(buffers, 1));
  }
}

TEST_CASE("RegisteredMemory: the most that was registered at a time is kept") {
  Setting at;
  std::byte bytes[300];
  auto first = at.memory.try_add(bytes, 100, 0);
  auto second = at.memory.try_add(bytes + 100, 200, 0);
  REQUIRE(first);
  REQUIRE(second);
  at.memory.remove(*first);
  CHECK(at.memory.bytes() == 200);
  CHECK(at.max_bytes == 300);
  at.device.registrations_allowed = 0;
  CHECK(!at.memory.try_add(bytes, 100, 0));
  CHECK(at.memory.bytes() == 200);
  at.memory.remove(*second);
}

TEST_CASE("RegisteredMemory: what is only kept registered makes room") {
  Setting at;
  std::byte bytes[300];
  at.kept.kept = 2;
  at.device.registrations_allowed = 1;
  auto first = at.memory.try_add(bytes, 100, 0);
  CHECK(at.kept.kept == 2);  // there was room
  auto second = at.memory.try_add(bytes + 100, 100, 0);
  auto third = at.memory.try_add(bytes + 200, 100, 0);
  CHECK(at.kept.kept == 0);
  CHECK(!at.memory.try_add(bytes, 100, 0));
  REQUIRE((first && second && third));
  for (auto* each : {&first, &second, &third}) at.memory.remove(**each);
}
