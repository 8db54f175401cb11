// Where the payload of a collective comes from and goes to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "coll_mq.hpp"

#include <span>
#include <vector>

#include "protocol/task.hpp"

namespace overlap::coll_mq {

/// A buffer of the program's.
struct TypedBuffer {
  void* start = nullptr;
  std::size_t count = 0;
  ompi_datatype_t* type = nullptr;

  /// Of its data, without gaps.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return type->super.size * count; }
  [[nodiscard]] bool is_contiguous() const noexcept;
  /// If it is contiguous.
  [[nodiscard]] std::byte* first_byte() const noexcept {
    return static_cast<std::byte*>(start) + type->super.true_lb;
  }
};

/// The memory that the places of a plan name, for one execution. Data with gaps is packed at the
/// start and unpacked at the end.
///
/// @thread  progress lock held, but for finish()
class Buffers {
 public:
  /// Give memory back that few collectives need: a program may have thousands outstanding.
  void trim() noexcept;
  /// Nothing is sent or received: a barrier.
  void clear() noexcept;
  void set_block(std::uint64_t block_bytes, std::uint32_t scratch_blocks);
  /// What is read only.
  void set_input(const TypedBuffer& buffer);
  /// What is written.
  /// @param reads_too  it has data at the start
  /// @param writes     false: it is only read
  void set_output(const TypedBuffer& buffer, bool reads_too, bool writes = true);
  /// The same for a reduction of elements, which lie as in the program's memory.
  /// @param shares  blocks of a vector, see share_bytes()
  void set_operation(ompi_op_t& op, const TypedBuffer& elements, std::uint32_t scratch_blocks,
                     std::uint32_t shares = 1);
  void set_elements(const void* input, void* output) noexcept;
  /// In place: what is sent lies where it is received.
  void read_output() noexcept { input_ = output_; }

  [[nodiscard]] std::span<std::byte> at(const Place& place) noexcept;
  void copy(const Place& from, const Place& to) noexcept;
  void reduce(const Place& from, const Place& to) noexcept;
  /// @returns  false: the payload is not what this rank expects there
  [[nodiscard]] bool deliver(std::span<const std::byte> payload, const Place& to) noexcept;
  /// Unpack what has come. @thread  MPI thread
  void finish() noexcept;

  /// Bytes of a vector in a reduction, gaps of its type included.
  [[nodiscard]] static std::uint64_t vector_bytes(const TypedBuffer& elements) noexcept;
  /// The same of one of so many shares, the last ones of which may be smaller.
  [[nodiscard]] static std::uint64_t share_bytes(const TypedBuffer& elements,
                                                 std::uint32_t shares) noexcept;

 private:
  std::span<std::byte> input_, output_;
  std::vector<std::byte> scratch_;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t vector_bytes_ = 0;  ///< of all blocks, where scratch has some like the last
  std::uint64_t scratch_stride_ = 0;
  ompi_op_t* op_ = nullptr;
  TypedBuffer elements_;
  std::vector<std::byte> packed_input_, packed_output_;
  TypedBuffer unpacked_;  ///< to, with bytes of packed_output_; no type: nothing
};

}  // namespace overlap::coll_mq
