// Messages in parts: any order, several at a time.
// SPDX-License-Identifier: BSD-3-Clause
#include "partial_messages.hpp"

#include <numeric>
#include <random>

#include "test/support/catch.hpp"

namespace overlap::coll_mq {
namespace {

std::vector<std::byte> bytes_of(std::size_t count, std::uint32_t seed) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i * 7);
  return bytes;
}

TEST_CASE("partial messages: parts of several messages in any order") {
  constexpr std::size_t whole_bytes = 1000, part_bytes = 300;
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    PartialMessages partial;
    struct Part {
      std::uint32_t message;
      std::uint32_t offset;
    };
    std::vector<Part> parts;
    for (std::uint32_t message = 0; message < 6; ++message) {
      for (std::uint32_t offset = 0; offset < whole_bytes; offset += part_bytes)
        parts.push_back({message, offset});
    }
    std::shuffle(parts.begin(), parts.end(), random);
    int ended = 0;
    for (const Part& part : parts) {
      MessageHead head;
      head.source = static_cast<Rank>(part.message % 2);
      head.sequence = part.message / 2;
      head.step = static_cast<std::uint16_t>(part.message);
      head.bytes = whole_bytes;
      head.offset = part.offset;
      const std::vector<std::byte> payload = bytes_of(whole_bytes, part.message);
      const std::size_t count = std::min<std::size_t>(part_bytes, whole_bytes - part.offset);
      REQUIRE(PartialMessages::is_sound(head, count));
      const auto whole = partial.add(head, std::span(payload).subspan(part.offset, count));
      if (!whole) continue;
      ++ended;
      CHECK(*whole == payload);
    }
    CHECK(ended == 6);
    CHECK(partial.empty());
  }
}

TEST_CASE("partial messages: what cannot be a part") {
  MessageHead head;
  head.bytes = 100;
  CHECK(PartialMessages::is_sound(head, 60));
  CHECK_FALSE(PartialMessages::is_sound(head, 100));
  CHECK_FALSE(PartialMessages::is_sound(head, 0));
  head.offset = 41;
  CHECK_FALSE(PartialMessages::is_sound(head, 60));
  CHECK(PartialMessages::is_sound(head, 59));
  head.offset = 0xfffffff0U;
  CHECK_FALSE(PartialMessages::is_sound(head, 60));
}

}  // namespace
}  // namespace overlap::coll_mq
