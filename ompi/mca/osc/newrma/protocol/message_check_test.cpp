// Messages that are not what their heads say.
// SPDX-License-Identifier: BSD-3-Clause
#include "message_check.hpp"

#include <vector>

#include "test/support/catch.hpp"

namespace overlap::newrma {
namespace {

bool whole(Kind kind, const std::vector<Block>& blocks, std::uint64_t payload_bytes) {
  MessageHead head;
  head.kind = kind;
  head.block_count = static_cast<std::uint32_t>(blocks.size());
  return is_whole(head, blocks, payload_bytes);
}

}  // namespace

TEST_CASE("A message holds the blocks that its head counts") {
  MessageHead head;
  CHECK(holds_blocks(head, 0));
  head.block_count = 2;
  CHECK_FALSE(holds_blocks(head, 31));
  CHECK(holds_blocks(head, 32));
  head.block_count = UINT32_MAX;
  CHECK_FALSE(holds_blocks(head, 4096));
}

TEST_CASE("Writes have the bytes of their blocks, no fewer and no more") {
  const Kind kind = GENERATE(Kind::put, Kind::accumulate, Kind::get_accumulate);
  const std::vector<Block> blocks{{0, 8}, {100, 3}};
  CHECK(whole(kind, blocks, 11));
  CHECK_FALSE(whole(kind, blocks, 10));
  CHECK_FALSE(whole(kind, blocks, 12));
  CHECK_FALSE(whole(kind, {{0, UINT64_MAX}, {0, 12}}, 11));
  CHECK(whole(kind, blocks, 0) == (kind != Kind::put));  // MPI_NO_OP
}

TEST_CASE("A compare-and-swap has two values of one block") {
  CHECK(whole(Kind::compare_swap, {{0, 8}}, 16));
  CHECK_FALSE(whole(Kind::compare_swap, {{0, 8}}, 8));
  CHECK_FALSE(whole(Kind::compare_swap, {{0, 8}}, 17));
  CHECK_FALSE(whole(Kind::compare_swap, {{0, 4}, {4, 4}}, 16));
  CHECK_FALSE(whole(Kind::compare_swap, {}, 0));
}

TEST_CASE("What asks has no payload, and what answers no blocks") {
  CHECK(whole(Kind::get, {{0, 8}}, 0));
  CHECK_FALSE(whole(Kind::get, {{0, 8}}, 8));
  CHECK(whole(Kind::key_wanted, {}, 0));
  CHECK(whole(Kind::data, {}, 100));
  CHECK_FALSE(whole(Kind::data, {{0, 100}}, 100));
  CHECK(whole(Kind::key, {}, 0));
}

TEST_CASE("A kind that there is not is no message") {
  CHECK_FALSE(whole(static_cast<Kind>(200), {}, 0));
}

}  // namespace overlap::newrma
