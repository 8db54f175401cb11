// Rows of writes, put together and taken apart again.
// SPDX-License-Identifier: BSD-3-Clause
#include "write_row.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

struct Write {
  MessageHead head;
  Block block;
  std::vector<std::byte> data;

  Write(Kind kind, std::uint16_t op, std::uint16_t element, std::uint64_t address,
        std::size_t bytes, std::byte value)
      : block{address, bytes}, data(bytes, value) {
    head.kind = kind;
    head.op = op;
    head.element = element;
    head.is_row = true;
    head.block_count = 1;
  }
  [[nodiscard]] std::uint64_t bytes() const { return sizeof block + data.size(); }
  void write_to(std::span<std::byte> out) const {
    std::memcpy(out.data(), &block, sizeof block);
    std::ranges::copy(data, out.begin() + sizeof block);
  }
  [[nodiscard]] bool same_kind(const Write& other) const {
    return row_head_of(head) == row_head_of(other.head);
  }
  bool operator==(const Write& other) const {
    return same_kind(other) && block.address == other.block.address && data == other.data;
  }
};

void add_message(Bundle& bundle, const Write& write) {
  const std::span<std::byte> out = bundle.add(sizeof(MessageHead) + write.bytes());
  std::memcpy(out.data(), &write.head, sizeof(MessageHead));
  write.write_to(out.subspan(sizeof(MessageHead)));
}

/// @returns  whether it is in the row of the one before
bool send(Bundle& bundle, const Write& write) {
  const std::span<std::byte> out = extend_row(bundle, write.head, write.bytes());
  if (out.empty())
    add_message(bundle, write);
  else
    write.write_to(out);
  return !out.empty();
}

std::vector<Write> taken_apart(const Bundle& bundle) {
  std::vector<Write> writes;
  const bool whole = Bundle::for_each(bundle.bytes(), [&](std::span<const std::byte> message) {
    MessageHead head;
    std::memcpy(&head, message.data(), sizeof head);
    REQUIRE(for_each_write(head, message.subspan(sizeof head),
                           [&](const Block& block, std::span<const std::byte> data) {
                             writes.emplace_back(head.kind, head.op, head.element, block.address, 0,
                                                 std::byte{});
                             writes.back().data.assign(data.begin(), data.end());
                           }));
  });
  REQUIRE(whole);
  return writes;
}

constexpr std::uint64_t room_bytes = 4096;

}  // namespace

TEST_CASE("Writes of one kind share a head, others do not") {
  Bundle bundle(room_bytes);
  const Write put(Kind::put, 0, 0, 8, 8, std::byte{1});
  const Write sum(Kind::accumulate, 3, 7, 16, 8, std::byte{2});
  CHECK(!send(bundle, put));
  CHECK(send(bundle, put));
  CHECK(bundle.bytes().size() == sizeof(Bundle::Length) + sizeof(MessageHead) + 2 * (16 + 8));
  CHECK(!send(bundle, sum));
  CHECK(send(bundle, sum));
  CHECK(!send(bundle, Write(Kind::accumulate, 4, 7, 16, 8, std::byte{2})));
  CHECK(!send(bundle, Write(Kind::accumulate, 4, 8, 16, 8, std::byte{2})));
  CHECK(!send(bundle, put));
  CHECK(bundle.messages() == 5);
}

TEST_CASE("Nothing joins a message that is no row, or a bundle that is full") {
  const Write put(Kind::put, 0, 0, 8, 8, std::byte{1});
  Bundle empty(room_bytes);
  CHECK(extend_row(empty, put.head, put.bytes()).empty());
  Write blocks = put;  // those of one operation: all blocks, then all data
  blocks.head.is_row = false;
  Bundle bundle(room_bytes);
  add_message(bundle, blocks);
  CHECK(extend_row(bundle, put.head, put.bytes()).empty());
  Bundle full(sizeof(Bundle::Length) + sizeof(MessageHead) + 2 * put.bytes() - 1);
  add_message(full, put);
  CHECK(extend_row(full, put.head, put.bytes()).empty());
}

TEST_CASE("Memory that runs out leaves a row as it was") {
  const Write put(Kind::put, 0, 0, 8, 8, std::byte{1});
  constexpr std::uint64_t too_many_bytes = std::uint64_t{1} << 62U;
  Bundle bundle(std::uint64_t{1} << 63U);
  send(bundle, put);
  std::uint64_t bytes = too_many_bytes * 2 - bundle.bytes().size();  // no vector takes them
  REQUIRE_THROWS(extend_row(bundle, put.head, bytes));
  CHECK(taken_apart(bundle) == std::vector<Write>{put});
}

TEST_CASE("Writes come out of their rows as they went in") {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    Bundle bundle(room_bytes);
    std::vector<Write> sent;
    std::size_t rows = 0;
    for (;;) {
      const bool adds = random() % 2 != 0;
      const Write write(adds ? Kind::accumulate : Kind::put, adds ? random() % 2 : 0,
                        adds ? random() % 2 : 0, random(), 1 + random() % 40,
                        static_cast<std::byte>(random()));
      if (!bundle.has_room(sizeof(MessageHead) + write.bytes())) break;
      rows += sent.empty() || !sent.back().same_kind(write) ? 1 : 0;
      send(bundle, write);
      sent.push_back(write);
    }
    REQUIRE((taken_apart(bundle) == sent));
    REQUIRE(bundle.messages() == rows);
  }
}

TEST_CASE("A row that is cut off, or goes on, is noticed") {
  Bundle bundle(room_bytes);
  const Write put(Kind::put, 0, 0, 8, 5, std::byte{1});
  for (int i = 0; i < 3; ++i) send(bundle, put);
  MessageHead head;
  std::memcpy(&head, bundle.message().data(), sizeof head);
  const std::span<const std::byte> writes = bundle.message().subspan(sizeof head);
  for (std::size_t left = 0; left <= writes.size(); ++left) {
    std::size_t taken = 0;
    const bool whole = for_each_write(head, writes.first(left), [&taken](auto&&...) { ++taken; });
    REQUIRE(whole == (left == writes.size()));
    REQUIRE(taken == left / put.bytes());
  }
  head.block_count = 2;
  REQUIRE(!for_each_write(head, writes, [](auto&&...) {}));
}

TEST_CASE("Nothing is taken out of a row of another kind") {
  const Kind kind = GENERATE(Kind::get_accumulate, Kind::compare_swap, Kind::get, Kind::bundle);
  Bundle bundle(room_bytes);
  send(bundle, Write(kind, 0, 0, 8, 8, std::byte{1}));
  MessageHead head;
  std::memcpy(&head, bundle.last().data(), sizeof head);
  unsigned taken = 0;
  CHECK_FALSE(for_each_write(head, bundle.last().subspan(sizeof head),
                             [&taken](const Block&, std::span<const std::byte>) { ++taken; }));
  CHECK(taken == 0);
}

}  // namespace overlap::newrma
