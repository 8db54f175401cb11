// Rows of operations, and what their owner reads of them.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/osc/newrma/protocol/operation_row.hpp"
#include "test/support/catch.hpp"

#include <vector>

using namespace overlap::newrma;

namespace {

constexpr RowHead put{.kind = Kind::put, .op = 0, .element = 0};
constexpr RowHead sum{.kind = Kind::accumulate, .op = 3, .element = 7};
constexpr RowHead swap{.kind = Kind::compare_swap, .op = 0, .element = 7};

void add(OperationRow& row, const RowHead& head, const Block& block, std::uint64_t value) {
  std::memcpy(row.add(head, block, {}), &value, sizeof value);
}

}  // namespace

TEST_CASE("operation row: operations of one kind, one operation and one type") {
  OperationRow row;
  CHECK(row.takes(put, 8));
  CHECK(row.takes(sum, 8));
  add(row, sum, {0, 8}, 1);
  CHECK(row.takes(sum, 8));
  CHECK_FALSE(row.takes(put, 8));
  CHECK_FALSE(row.takes({.kind = Kind::get_accumulate, .op = 3, .element = 7}, 8));
  CHECK_FALSE(row.takes({.kind = Kind::accumulate, .op = 4, .element = 7}, 8));
  CHECK_FALSE(row.takes({.kind = Kind::accumulate, .op = 3, .element = 8}, 8));
  row.clear();
  CHECK(row.empty());
  CHECK(row.takes(put, 8));
}

TEST_CASE("operation row: as many as fit, with room for both values of a swap") {
  OperationRow row;
  std::size_t count = 0;
  for (; row.takes(put, 8); ++count) add(row, put, {8 * count, 8}, count);
  CHECK(count == OperationRow::count_max);
  row.clear();
  for (count = 0; row.takes(swap, 16); ++count) add(row, swap, {16 * count, 16}, count);
  CHECK(count == OperationRow::room_bytes / (sizeof(Block) + 32));
  row.clear();
  CHECK(row.takes(put, OperationRow::room_bytes - sizeof(Block)));
  CHECK_FALSE(row.takes(put, OperationRow::room_bytes - sizeof(Block) + 1));
  CHECK_FALSE(row.takes(swap, OperationRow::room_bytes / 2));
}

TEST_CASE("operation row: its owner finds each block with its data, and answers in its place") {
  OperationRow row;
  const RowHead get_sum{.kind = Kind::get_accumulate, .op = 3, .element = 7};
  std::uint64_t results[3] = {0, 0, 0};
  for (std::uint64_t i = 0; i < 3; ++i) {
    const std::uint64_t value = 10 + i;
    std::memcpy(row.add(get_sum, {.address = 100 * i, .bytes = 8}, {.result = &results[i]}), &value,
                sizeof value);
  }
  RowArea area;
  area.write(row.blocks(), row.data());
  std::vector<std::uint64_t> seen;
  for_each_of_row(area.begin(), row.head(), row.count(),
                  [&seen](const Block& block, std::byte* data) {
                    std::uint64_t value = 0;
                    std::memcpy(&value, data, sizeof value);
                    seen.push_back(block.address);
                    seen.push_back(value);
                    value *= 2;
                    std::memcpy(data, &value, sizeof value);
                  });
  CHECK(seen == std::vector<std::uint64_t>{0, 10, 100, 11, 200, 12});
  area.read(row.count(), row.data());
  row.for_each([&row](std::size_t index, const Block& block, const std::byte* data) {
    std::memcpy(row.places(index).result, data, block.bytes);
  });
  CHECK(results[0] == 20);
  CHECK(results[1] == 22);
  CHECK(results[2] == 24);
}

TEST_CASE("operation row: a swap's answer takes the place of the value compared with") {
  OperationRow row;
  for (std::uint64_t i = 0; i < 2; ++i) {
    const std::uint64_t values[] = {i, i + 100};
    std::memcpy(row.add(swap, {.address = 8 * i, .bytes = 8}, {}), values, sizeof values);
  }
  RowArea area;
  area.write(row.blocks(), row.data());
  std::vector<std::uint64_t> seen;
  for_each_of_row(area.begin(), swap, 2, [&seen](const Block& block, const std::byte* data) {
    std::uint64_t values[2] = {};
    std::memcpy(values, data, sizeof values);
    seen.insert(seen.end(), {block.address, values[0], values[1]});
  });
  CHECK(seen == std::vector<std::uint64_t>{0, 0, 100, 8, 1, 101});
}
