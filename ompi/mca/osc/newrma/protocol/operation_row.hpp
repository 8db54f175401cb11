// Operations of one kind on one rank's memory: what its owner is asked for at once.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "message.hpp"

namespace overlap::newrma {

/// What all operations of a row have in common.
struct RowHead {
  Kind kind{};  ///< put, get, accumulate, get_accumulate or compare_swap
  std::uint16_t op = 0;
  std::uint16_t element = 0;  ///< numbers as in MessageHead

  bool operator==(const RowHead&) const = default;
  [[nodiscard]] bool answers() const noexcept {
    return kind != Kind::put && kind != Kind::accumulate;
  }
  /// Of a block of so many bytes: what goes to the owner or has room for its answer; of a swap both
  /// values, and the answer takes the place of the first.
  [[nodiscard]] std::uint64_t data_bytes(std::uint64_t block_bytes) const noexcept {
    return kind == Kind::compare_swap ? 2 * block_bytes : block_bytes;
  }
};

/// Operations in the order in which they were issued, and where their results go.
class OperationRow {
 public:
  static constexpr std::size_t count_max = 64;
  /// Of blocks and data together: with eight bytes each, as many as count_max.
  static constexpr std::size_t room_bytes = 1584;

  /// Where the program has the values of an operation.
  struct Places {
    const void* origin = nullptr;
    const void* compare = nullptr;
    void* result = nullptr;
  };

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t count() const noexcept { return count_; }
  [[nodiscard]] const RowHead& head() const noexcept { return head_; }
  [[nodiscard]] std::span<const Block> blocks() const noexcept {
    return std::span(blocks_).first(count_);
  }
  [[nodiscard]] std::span<std::byte> data() noexcept { return std::span(data_).first(bytes_); }
  [[nodiscard]] const Places& places(std::size_t index) const noexcept { return places_[index]; }

  /// May one more operation, on a block of so many bytes, stand behind those in it?
  [[nodiscard]] bool takes(const RowHead& head, std::uint64_t block_bytes) const noexcept {
    return (empty() || head == head_) && count_ < count_max &&
           (count_ + 1) * sizeof(Block) + bytes_ + head.data_bytes(block_bytes) <= room_bytes;
  }
  /// @param head  one that it takes
  /// @returns  where to write the data of the operation
  [[nodiscard]] std::byte* add(const RowHead& head, const Block& block,
                               const Places& places) noexcept {
    std::byte* const data = data_.data() + bytes_;
    head_ = head;
    blocks_[count_] = block;
    places_[count_] = places;
    bytes_ += head.data_bytes(block.bytes);
    ++count_;
    return data;
  }
  void clear() noexcept { count_ = bytes_ = 0; }

  /// @param act  called with the index, the block and the data of each operation
  template <class Act>
  void for_each(Act&& act) {
    std::byte* data = data_.data();
    for (std::size_t i = 0; i < count_; ++i) {
      act(i, blocks_[i], data);
      data += head_.data_bytes(blocks_[i].bytes);
    }
  }

 private:
  RowHead head_;
  std::size_t count_ = 0;
  std::size_t bytes_ = 0;  ///< of data
  std::array<Block, count_max> blocks_;
  std::array<Places, count_max> places_;
  alignas(64) std::array<std::byte, room_bytes - sizeof(Block)> data_;
};

/// Go through a row as its owner has it: blocks, and behind them their data.
/// @param act  called with the block and the data of each operation
template <class Act>
void for_each_of_row(std::byte* row, const RowHead& head, std::size_t count, Act&& act) noexcept {
  std::byte* data = row + count * sizeof(Block);
  for (std::size_t i = 0; i < count; ++i) {
    Block block;
    std::memcpy(&block, row + i * sizeof block, sizeof block);
    act(block, data);
    data += head.data_bytes(block.bytes);
  }
}

/// Such a row in memory that both map.
class RowArea {
 public:
  void write(std::span<const Block> blocks, std::span<const std::byte> data) noexcept {
    if (!blocks.empty()) std::memcpy(bytes_.data(), blocks.data(), blocks.size_bytes());
    std::memcpy(bytes_.data() + blocks.size_bytes(), data.data(), data.size());
  }
  /// Answers are read from where the data was.
  void read(std::size_t count, std::span<std::byte> data) const noexcept {
    std::memcpy(data.data(), bytes_.data() + count * sizeof(Block), data.size());
  }
  [[nodiscard]] std::byte* begin() noexcept { return bytes_.data(); }

 private:
  alignas(16) std::array<std::byte, OperationRow::room_bytes> bytes_;
};

}  // namespace overlap::newrma
