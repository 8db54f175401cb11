// Pools of registered buffers, and the count of what is registered.
// SPDX-License-Identifier: BSD-3-Clause
#include "buffer_pool.hpp"

#include <set>

#include "sim/fake_device.hpp"
#include "test/support/catch.hpp"

using namespace overlap;
using namespace overlap::ring;

namespace {

struct Setting {
  sim::FakeDevice device;
  std::uint64_t max_bytes = 0;
  RegisteredMemory memory{device, max_bytes, sim::throw_refused};
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
    CHECK(at.device.registered.count(pool.local_key()) == 1);
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
