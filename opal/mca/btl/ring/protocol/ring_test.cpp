// The two halves of a ring against each other: every order of landing bytes, every order of
// freeing.
// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "receive_ring.hpp"
#include "send_ring.hpp"
#include "test/support/catch.hpp"

using namespace overlap::ring;

namespace {

/// A ring of `slots` slots with both sides in one place; the test is the network.
class Pair {
 public:
  Pair(std::uint32_t slots, std::uint32_t slot_bytes)
      : slot_bytes_(slot_bytes),
        sender_memory_(std::size_t{slots} * slot_bytes / line_bytes),
        receiver_memory_(sender_memory_.size()),
        send(sender_memory_[0].bytes, slots, slot_bytes),
        receive(receiver_memory_[0].bytes, slots, slot_bytes) {}

  /// What one write carries, and where to.
  struct Wire {
    std::vector<std::byte> bytes;
    std::byte* to;
  };
  Wire post(const std::vector<std::byte>& payload, bool in_place, std::uint32_t sequence = 0) {
    MessageHeader header;
    header.tag = 1;
    header.control = in_place ? control_bit::in_place : 0;
    header.size_bytes = static_cast<std::uint32_t>(payload.size());
    header.sequence = sequence;
    std::byte* const slot = send.slot(send.head_slot());
    if (!in_place) std::copy(payload.begin(), payload.end(), slot + header_bytes);
    const SendRing::Sealed sealed = send.seal(header);
    Wire wire{{slot, slot + sealed.wire_bytes},
              receiver_memory_[0].bytes + std::size_t{sealed.slot} * slot_bytes_};
    if (in_place) {
      wire.bytes.assign(slot, slot + header_bytes);
      wire.bytes.insert(wire.bytes.end(), payload.begin(), payload.end());
      wire.bytes.insert(wire.bytes.end(), slot + sealed.tail_offset,
                        slot + sealed.tail_offset + sealed.tail_bytes);
    }
    REQUIRE(wire.bytes.size() == sealed.wire_bytes);
    return wire;
  }
  void land(const Wire& wire) { std::copy(wire.bytes.begin(), wire.bytes.end(), wire.to); }

 private:
  struct alignas(line_bytes) Line {
    std::byte bytes[line_bytes];
  };
  std::uint32_t slot_bytes_;
  std::vector<Line> sender_memory_;
  std::vector<Line> receiver_memory_;

 public:
  SendRing send;
  ReceiveRing receive;
};

std::vector<std::byte> filled(std::size_t bytes, std::uint8_t value) {
  return std::vector<std::byte>(bytes, std::byte{value});
}

}  // namespace

TEST_CASE("Ring: the story of one message (P2.2, P2.4)") {
  Pair pair(5, 128);
  ReceiveRing::Arrival arrival{};
  CHECK_FALSE(pair.receive.peek(arrival));
  const std::vector<std::byte> payload = filled(80, 17);
  const Pair::Wire wire = pair.post(payload, false, 9);
  CHECK(wire.bytes.size() == 128);
  CHECK(pair.send.free_slots() == 4);
  CHECK_FALSE(pair.receive.peek(arrival));
  pair.land(wire);
  REQUIRE(pair.receive.peek(arrival));
  REQUIRE(pair.receive.peek(arrival));  // until it is taken
  CHECK(arrival.slot == 0);
  CHECK(arrival.header.size_bytes == 80);
  CHECK(arrival.header.sequence == 9);
  CHECK(std::equal(payload.begin(), payload.end(), arrival.payload));
  pair.receive.advance();
  CHECK_FALSE(pair.receive.peek(arrival));
  CHECK(pair.receive.head() == 1);
  CHECK_FALSE(pair.receive.drained());
  CHECK(pair.receive.credits() == 0);
  pair.receive.free(0);
  CHECK(pair.receive.drained());
  CHECK(pair.receive.credits() == 1);
  CHECK_FALSE(pair.send.all_returned());
  CHECK(pair.send.on_credits(pair.receive.take_credits(UINT16_MAX)));
  CHECK(pair.receive.credits() == 0);
  CHECK(pair.send.all_returned());
}

TEST_CASE("Ring: nothing is found before the last byte, whatever was there before (P2.2, P3.2)") {
  // Two messages before, through one slot, each of them copied or in place, all payloads full of
  // one byte value.
  const std::array<std::size_t, 8> sizes{0, 1, 46, 47, 48, 111, 112, 175};
  const std::array<std::uint8_t, 3> values{flag_value::primary, flag_value::secondary,
                                           flag_value::empty};
  std::uint64_t looks = 0;
  for (const std::size_t first : sizes) {
    for (const std::size_t second : sizes) {
      for (const std::size_t third : sizes) {
        for (unsigned kinds = 0; kinds < 8; ++kinds) {
          for (const std::uint8_t value : values) {
            Pair pair(1, 192);
            ReceiveRing::Arrival arrival{};
            const std::array<std::size_t, 3> all{first, second, third};
            for (std::size_t i = 0; i < all.size(); ++i) {
              const Pair::Wire wire = pair.post(filled(all[i], value), (kinds >> i & 1U) != 0);
              for (std::size_t landed = 0; landed < wire.bytes.size(); ++landed) {
                if (pair.receive.peek(arrival))
                  FAIL("found after " << landed << " of " << wire.bytes.size() << " bytes");
                wire.to[landed] = wire.bytes[landed];
                ++looks;
              }
              REQUIRE(pair.receive.peek(arrival));
              REQUIRE(arrival.header.size_bytes == all[i]);
              pair.receive.advance();
              REQUIRE(std::all_of(arrival.payload, arrival.payload + all[i],
                                  [value](std::byte b) { return b == std::byte{value}; }));
              pair.receive.free(arrival.slot);
              REQUIRE(pair.send.on_credits(pair.receive.take_credits(1)));
            }
          }
        }
      }
    }
  }
  CHECK(looks > 3'000'000);
}

TEST_CASE("Ring: slots freed in every order come back as credits in the order of the ring (P2.4)") {
  std::array<std::uint32_t, 5> order{0, 1, 2, 3, 4};
  do {
    Pair pair(5, 64);
    ReceiveRing::Arrival arrival{};
    for (std::uint32_t i = 0; i < 5; ++i) {
      REQUIRE(pair.send.has_credit());
      pair.land(pair.post({}, false, i));
      REQUIRE(pair.receive.peek(arrival));
      pair.receive.advance();
    }
    REQUIRE_FALSE(pair.send.has_credit());
    REQUIRE_FALSE(pair.receive.peek(arrival));  // the head stands at a slot that is still held
    std::array<bool, 5> is_free{};
    for (std::size_t i = 0; i < 5; ++i) {
      pair.receive.free(order[i]);
      is_free[order[i]] = true;
      const auto tail = std::find(is_free.begin(), is_free.end(), false) - is_free.begin();
      REQUIRE(pair.receive.credits() == static_cast<std::uint32_t>(tail));
      REQUIRE(pair.receive.drained() == (i == 4));
    }
    REQUIRE(pair.send.on_credits(pair.receive.take_credits(2)));
    REQUIRE(pair.send.free_slots() == 2);
    REQUIRE(pair.send.on_credits(pair.receive.take_credits(UINT16_MAX)));
    REQUIRE(pair.send.all_returned());
    REQUIRE(pair.send.head_slot() == pair.receive.head());
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("Ring: more credits than slots are out are refused and change nothing (P2.4)") {
  Pair pair(5, 64);
  CHECK_FALSE(pair.send.on_credits(1));
  static_cast<void>(pair.post({}, false));
  static_cast<void>(pair.post({}, false));
  CHECK_FALSE(pair.send.on_credits(3));
  CHECK_FALSE(pair.send.on_credits(UINT32_MAX));
  CHECK(pair.send.free_slots() == 3);
  CHECK(pair.send.on_credits(2));
  CHECK(pair.send.all_returned());
}

TEST_CASE("Ring: the head is visible to other processes (segment)") {
  Pair pair(3, 64);
  std::uint32_t seen = 99;
  ReceiveRing::Arrival arrival{};
  pair.receive.publish_head(&seen);
  CHECK(seen == 0);
  for (std::uint32_t i = 1; i <= 7; ++i) {
    pair.land(pair.post({}, false));
    REQUIRE(pair.receive.peek(arrival));
    pair.receive.advance();
    CHECK(seen == i % 3);
    pair.receive.free(arrival.slot);
    REQUIRE(pair.send.on_credits(pair.receive.take_credits(1)));
  }
}

TEST_CASE("Ring: a size that no slot holds is never taken for a message") {
  Pair pair(2, 128);
  Pair::Wire wire = pair.post(filled(10, 1), false);
  ReceiveRing::Arrival arrival{};
  for (const std::uint32_t size : {payload_max_bytes(128) + 1, 1U << 20U, UINT32_MAX}) {
    std::memcpy(wire.bytes.data() + offsetof(MessageHeader, size_bytes), &size, sizeof size);
    pair.land(wire);
    CHECK_FALSE(pair.receive.peek(arrival));
  }
}

TEST_CASE("Ring: seeded walk, slots freed at random (P2.4)") {
  std::mt19937 random(1);
  Pair pair(5, 192);
  std::vector<ReceiveRing::Arrival> taken;
  std::vector<Pair::Wire> under_way;
  std::uint32_t posted = 0;
  std::uint32_t seen = 0;
  for (int i = 0; i < 200000; ++i) {
    switch (random() % 4) {
      case 0:
        if (!pair.send.has_credit()) break;
        under_way.push_back(pair.post(filled(random() % 176, static_cast<std::uint8_t>(posted)),
                                      random() % 2 != 0, posted));
        ++posted;
        break;
      case 1:
        if (!under_way.empty()) pair.land(under_way.front()), under_way.erase(under_way.begin());
        break;
      case 2: {
        ReceiveRing::Arrival arrival{};
        if (!pair.receive.peek(arrival)) break;
        REQUIRE(arrival.header.sequence == seen);
        ++seen;
        pair.receive.advance();
        taken.push_back(arrival);
        break;
      }
      default:
        if (taken.empty()) break;
        std::swap(taken[random() % taken.size()], taken.back());
        const auto value = static_cast<std::byte>(taken.back().header.sequence);
        const std::byte* payload = taken.back().payload;
        REQUIRE(std::all_of(payload, payload + taken.back().header.size_bytes,
                            [value](std::byte b) { return b == value; }));
        pair.receive.free(taken.back().slot);
        taken.pop_back();
        REQUIRE(pair.send.on_credits(pair.receive.take_credits(1 + random() % 3)));
    }
    // Every slot is in one place.
    const auto held_back = 5 - pair.send.free_slots() - pair.receive.credits() -
                           static_cast<std::uint32_t>(under_way.size());
    REQUIRE(held_back >= taken.size());
  }
  CHECK(seen > 10000);
}
