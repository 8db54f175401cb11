// Open MPI's datatypes as one-sided communication needs them: streams of bytes at the origin,
// blocks of memory at the target.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "protocol/message.hpp"

namespace overlap::newrma {

/// `count` elements of a type.
struct TypedCount {
  ompi_datatype_t* type = nullptr;
  std::size_t count = 0;

  [[nodiscard]] std::uint64_t bytes() const noexcept { return type->super.size * count; }
  /// Is the data in one piece, so that bytes can be copied as they are?
  [[nodiscard]] bool is_contiguous() const noexcept {
    return opal_datatype_is_contiguous_memory_layout(&type->super,
                                                     static_cast<std::int32_t>(count)) != 0;
  }
  /// Where data in one piece starts that lies in this buffer.
  [[nodiscard]] std::byte* first_byte(const void* buffer) const noexcept {
    return static_cast<std::byte*>(const_cast<void*>(buffer)) + type->super.true_lb;
  }
};

/// The range of memory that data covers, from where its buffer starts.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
[[nodiscard]] Range range_of(const TypedCount& data) noexcept;

/// Blocks of a target's data, in the order of its bytes.
/// @param start          of the buffer in the window
/// @param element  of an accumulate: blocks are made of whole elements with the gaps in them
///                 (MPI_DOUBLE_INT); nullptr: of bytes of data
/// @param memory  for the list; what is in it goes
[[nodiscard]] std::vector<Block> blocks_of(const TypedCount& data, std::uint64_t start,
                                           const ompi_datatype_t* element,
                                           std::vector<Block> memory = {});

/// Call take(block) for each of them, in the same order: no list of them is made.
void for_each_block(const TypedCount& data, std::uint64_t start, const ompi_datatype_t* element,
                    void (*take)(void* context, const Block& block), void* context);
template <class Take>
void for_each_block(const TypedCount& data, std::uint64_t start, const ompi_datatype_t* element,
                    Take&& take) {
  for_each_block(
      data, start, element,
      [](void* context, const Block& block) {
        (*static_cast<std::remove_reference_t<Take>*>(context))(block);
      },
      &take);
}

/// The predefined type that a type is made of, as all processes know it.
/// @returns  nullptr: of several
[[nodiscard]] ompi_datatype_t* element_of(ompi_datatype_t& type) noexcept;
/// Bytes from one element to the next.
[[nodiscard]] inline std::uint64_t stride_of(const ompi_datatype_t& element) noexcept {
  return static_cast<std::uint64_t>(element.super.ub - element.super.lb);
}
[[nodiscard]] inline bool has_gaps(const ompi_datatype_t& element) noexcept {
  return stride_of(element) != element.super.size;
}

/// Bytes behind the last member of an element.
[[nodiscard]] inline std::uint64_t end_gap_of(const ompi_datatype_t& element) noexcept {
  return static_cast<std::uint64_t>(element.super.ub - element.super.true_ub);
}

/// Numbers of predefined types and operations, which are the same in all processes.
[[nodiscard]] ompi_datatype_t* type_of_number(std::uint16_t number) noexcept;
[[nodiscard]] ompi_op_t* op_of_number(std::uint16_t number) noexcept;

/// A user's buffer as a stream of bytes, read or written from its begin on.
///
/// Open MPI packs whole members only (all of a double, or nothing), and messages end anywhere: what
/// is left of a member is kept for the next read.
///
/// @thread  progress lock held
class ByteStream {
 public:
  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  void open(void* buffer, const TypedCount& data);
  /// Copy bytes out of the buffer, and into it. Cheap where the last call has ended.
  void read(std::uint64_t position, std::span<std::byte> out);
  void write(std::uint64_t position, std::span<const std::byte> in);

 private:
  static constexpr std::size_t member_max_bytes = 64;  // long double _Complex has 32

  [[nodiscard]] opal_convertor_t& convertor(bool reading);
  void skip_to(std::uint64_t position);
  [[nodiscard]] std::size_t take_kept(std::span<std::byte> out) noexcept;
  [[nodiscard]] std::size_t pack(std::span<std::byte> out);

  std::byte* start_ = nullptr;  ///< of data in one piece
  void* buffer_ = nullptr;
  TypedCount data_;
  std::unique_ptr<opal_convertor_t> convertor_;
  std::uint64_t read_bytes_ = 0;  ///< where the next read goes on
  std::array<std::byte, member_max_bytes> kept_;
  std::size_t kept_begin_ = 0;
  std::size_t kept_end_ = 0;
};

}  // namespace overlap::newrma
