// Pools of registered buffers, and the count of what is registered.
// SPDX-License-Identifier: BSD-3-Clause
#include "peer_buffers.hpp"

#include <set>

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

namespace {

/// What a peer that takes no messages gets.
unsigned take_all(PeerBuffers& buffers, std::uint32_t peer) {
  unsigned taken = 0;
  while (buffers.try_take(peer)) ++taken;
  return taken;
}

}  // namespace

TEST_CASE("PeerBuffers: peers that take no messages leave buffers to the others") {
  Setting at;
  PeerBuffers buffers(at.memory, shape);
  std::set<std::byte*> taken;
  for (std::uint32_t peer = 0; peer < 40; ++peer) {
    const auto first = buffers.try_take(peer);
    REQUIRE(first);
    CHECK(taken.insert(buffers.at(*first)).second);
    CHECK(at.device.registered.count(buffers.local_key(*first)) == 1);
    // Beyond its share the first one has what was left of a block, and nobody else anything.
    CHECK(take_all(buffers, peer) == (peer == 0 ? 3 : 0));
  }
  CHECK(at.device.registered.size() == 11);
}

TEST_CASE("PeerBuffers: one peer has no more than there were at first") {
  Setting at;
  PeerBuffers buffers(at.memory, shape);
  CHECK(take_all(buffers, 7) == 4);
  CHECK(at.device.registered.size() == 1);
  REQUIRE(buffers.try_take(3));
  CHECK_FALSE(buffers.try_take(7));
  buffers.give_back(2);
  CHECK(buffers.try_take(7));
  // Two that have more than their shares share the rest of a block.
  for (std::uint32_t index = 0; index < 2; ++index) buffers.give_back(index);
  CHECK(take_all(buffers, 3) == 2);
  CHECK_FALSE(buffers.try_take(7));
}

TEST_CASE("PeerBuffers: without memory for more a peer waits for one of the others'") {
  Setting at;
  at.device.registrations_allowed = 1;
  PeerBuffers buffers(at.memory, shape);
  CHECK(take_all(buffers, 0) == 4);
  CHECK_FALSE(buffers.try_take(1));
  buffers.give_back(0);
  CHECK(buffers.try_take(1) == 0U);
  at.device.registrations_allowed = 1;
  CHECK(buffers.try_take(2) == 4U);
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
