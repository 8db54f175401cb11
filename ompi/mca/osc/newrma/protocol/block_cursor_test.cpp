// Lists of blocks cut into messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "block_cursor.hpp"

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

constexpr std::uint64_t block_bytes = sizeof(Block);

/// Everything that a cursor hands out, each message's blocks behind those of the one before.
struct Taken {
  std::vector<Block> blocks;
  std::vector<std::uint64_t> message_bytes;
};

Taken take_all(std::span<const Block> blocks, std::uint64_t room_bytes, std::uint64_t element_bytes,
               bool with_data) {
  Taken taken;
  BlockCursor cursor(blocks);
  while (!cursor.at_end()) {
    std::vector<Block> message;
    const std::uint64_t bytes = cursor.take(message, room_bytes, element_bytes, with_data);
    REQUIRE(bytes != 0);
    const std::uint64_t data_bytes = with_data ? bytes : 0;
    CHECK(message.size() * block_bytes + data_bytes <= room_bytes);
    for (const Block& each : message) CHECK(each.bytes % element_bytes == 0);
    taken.blocks.insert(taken.blocks.end(), message.begin(), message.end());
    taken.message_bytes.push_back(bytes);
  }
  return taken;
}

/// Addresses of all bytes, in order.
std::vector<std::uint64_t> addresses_of(std::span<const Block> blocks) {
  std::vector<std::uint64_t> addresses;
  for (const Block& each : blocks) {
    for (std::uint64_t i = 0; i < each.bytes; ++i) addresses.push_back(each.address + i);
  }
  return addresses;
}

}  // namespace

TEST_CASE("Block cursor: no blocks, no messages") {
  const BlockCursor cursor({});
  CHECK(cursor.at_end());
  CHECK(cursor.position() == 0);
}

TEST_CASE("Block cursor: each byte once and in order, whatever the room and the element") {
  const std::vector<Block> blocks{{1000, 24}, {64, 8}, {5000, 160}, {4, 16}, {100, 8}};
  for (const std::uint64_t element_bytes : {1U, 4U, 8U}) {
    for (std::uint64_t room = block_bytes + 8; room < 300; ++room) {
      CAPTURE(element_bytes, room);
      CHECK(addresses_of(take_all(blocks, room, element_bytes, true).blocks) ==
            addresses_of(blocks));
    }
  }
}

TEST_CASE("Block cursor: without data only the blocks need room") {
  const std::vector<Block> blocks{{0, 1000000}, {2000000, 1}, {3000000, 7}};
  const Taken taken = take_all(blocks, 2 * block_bytes + 1, 1, false);
  CHECK(taken.message_bytes == std::vector<std::uint64_t>{1000001, 7});
}

TEST_CASE("Block cursor: a copy goes on where it was made") {
  const std::vector<Block> blocks{{0, 100}, {200, 50}};
  BlockCursor cursor(blocks);
  std::vector<Block> first, again;
  CHECK(cursor.take(first, block_bytes + 60, 1, true) == 60);
  CHECK(cursor.position() == 60);
  const BlockCursor before = cursor;
  std::vector<Block> gone;
  CHECK(cursor.take(gone, 1000, 1, true) == 90);
  CHECK(cursor.at_end());
  cursor = before;
  CHECK(cursor.take(again, 1000, 1, true) == 90);
  CHECK(addresses_of(again) == addresses_of(gone));
}

}  // namespace overlap::newrma
