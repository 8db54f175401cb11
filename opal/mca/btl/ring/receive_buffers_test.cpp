// Receive buffers of the channel: posted once each, more when they are short.
// SPDX-License-Identifier: BSD-3-Clause
#include "receive_buffers.hpp"

#include <set>

#include "sim/fake_device.hpp"
#include "test/support/catch.hpp"
#include "work_id.hpp"

using namespace overlap;
using namespace overlap::ring;

namespace {

struct Setting {
  sim::FakeDevice device;
  std::uint64_t max_bytes = 0;
  sim::FakeReclaim kept{device};
  RegisteredMemory memory{device, kept, max_bytes, sim::throw_refused};
  Segment segment{{.rings = 1,
                   .ring_slots = 5,
                   .slot_bytes = 256,
                   .buffers = 8,
                   .buffer_bytes = 512,
                   .buffers_max = 32}};
  ReceiveBuffers buffers{device, memory, segment, {.first = 8, .max = 32, .buffer_bytes = 512}};

  /// Take so many messages in a row, as a poll of the completion queue would.
  void take(std::uint32_t messages) {
    for (std::uint32_t i = 0; i < messages; ++i) {
      buffers.taken();
      buffers.repost(i % 8);
    }
  }
};

}  // namespace

TEST_CASE("ReceiveBuffers: the first ones are posted once each, where they lie in the segment") {
  Setting at;
  at.buffers.grow();
  REQUIRE(at.device.posted.size() == 8);
  std::set<std::uint32_t> indices;
  for (const sim::PostedReceive& each : at.device.posted) {
    CHECK(kind_of_id(each.id) == IdKind::receive);
    CHECK(indices.insert(index_of_id(each.id)).second);
    CHECK(each.address == at.segment.buffer(index_of_id(each.id)));
    CHECK(each.bytes == 512);
    CHECK(at.device.registered.count(each.local_key) == 1);
  }
  at.buffers.grow();
  CHECK(at.device.posted.size() == 8);
}

TEST_CASE("ReceiveBuffers: senders that have nearly used them up get more") {
  Setting at;
  at.buffers.grow();
  const std::uint32_t first_key = at.device.posted.front().local_key;
  at.take(6);
  at.device.posted.clear();
  at.buffers.grow();
  REQUIRE(at.device.posted.size() == 8);
  CHECK(index_of_id(at.device.posted.front().id) == 8);
  CHECK(at.device.posted.front().local_key != first_key);
  // Each is posted with the key of the chunk that it lies in.
  at.buffers.repost(7);
  CHECK(at.device.posted.back().local_key == first_key);
  at.buffers.repost(8);
  CHECK(at.device.posted.back().local_key == at.device.posted.front().local_key);
}

TEST_CASE("ReceiveBuffers: messages that came one by one ask for no more") {
  Setting at;
  at.buffers.grow();
  for (int i = 0; i < 100; ++i) {
    at.take(1);
    at.buffers.drained();
  }
  at.device.posted.clear();
  at.buffers.grow();
  CHECK(at.device.posted.empty());
}

TEST_CASE("ReceiveBuffers: more that are refused are done without, the first ones are not") {
  Setting at;
  SECTION("the first ones") {
    at.device.registrations_allowed = 0;
    CHECK_THROWS_AS(at.buffers.grow(), sim::Refused);
  }
  SECTION("more") {
    at.buffers.grow();
    at.device.registrations_allowed = 0;
    at.take(8);
    at.device.posted.clear();
    at.buffers.grow();
    CHECK(at.device.posted.empty());
    at.device.registrations_allowed = 1;
    at.take(8);
    at.device.posted.clear();
    at.buffers.grow();
    CHECK(at.device.posted.empty());  // it was asked once
  }
}

TEST_CASE("ReceiveBuffers: a broken device is not reported here, a refused entry is") {
  Setting at;
  at.buffers.grow();
  at.device.post_status = fabric::Status::broken;
  CHECK_NOTHROW(at.buffers.repost(0));
  at.device.post_status = fabric::Status::retry_queue_full;
  CHECK_THROWS_AS(at.buffers.repost(0), sim::Refused);
}
