// One operation on a window: what a call asks for, and how far it has got.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "ompi/mca/common/overlap/openmpi.hpp"

#include <optional>

#include "osc_newrma_datatype.hpp"
#include "osc_newrma_memory.hpp"
#include "osc_newrma_request.hpp"
#include "protocol/block_cursor.hpp"

namespace overlap::newrma {

/// The arguments of a call.
struct OperationCall {
  Kind kind{};  ///< put, get, accumulate, get_accumulate or compare_swap
  const void* origin = nullptr;
  TypedCount origin_data;
  const void* compare = nullptr;  ///< compare_swap
  void* result = nullptr;         ///< of all that answer; a get's, too
  TypedCount result_data;
  Rank target = 0;
  std::uint64_t start = 0;  ///< of the target's buffer, as of Block::address
  TypedCount target_data;
  ompi_op_t* op = nullptr;             ///< accumulates
  ompi_datatype_t* element = nullptr;  ///< the predefined type of an accumulate's data

  /// Does the target send something back? Its place may be MPI_BOTTOM, a null pointer.
  [[nodiscard]] bool answers() const noexcept {
    return kind != Kind::put && kind != Kind::accumulate;
  }
  [[nodiscard]] bool accumulates() const noexcept { return op != nullptr || compare != nullptr; }
  [[nodiscard]] bool writes() const noexcept {
    return kind != Kind::get && op != &ompi_mpi_op_no_op.op;
  }
  /// Data that a put reads, or a get writes, at the origin, and where it starts in one piece.
  [[nodiscard]] const TypedCount& own_data() const noexcept {
    return kind == Kind::get ? result_data : origin_data;
  }
  [[nodiscard]] std::byte* own_first_byte() const noexcept {
    return own_data().first_byte(kind == Kind::get ? result : origin);
  }
  /// Bytes that go to the target, or come from it.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return target_data.bytes(); }
};

/// Carry a call out on memory that this process maps.
/// @param memory  where the target's buffer starts here
/// @throws std::bad_alloc
/// @thread  progress lock held
void copy_directly(const OperationCall& call, std::byte* memory);
void accumulate_directly(const OperationCall& call, std::byte* memory, ControlBlock& control);

/// Most programs' elements without a call of a function.
inline void copy_few(void* to, const void* from, std::uint64_t bytes) noexcept {
  if (bytes == sizeof(std::uint64_t))
    std::memcpy(to, from, sizeof(std::uint64_t));
  else if (bytes == 2 * sizeof(std::uint64_t))
    std::memcpy(to, from, 2 * sizeof(std::uint64_t));
  else if (bytes == sizeof(std::uint32_t))
    std::memcpy(to, from, sizeof(std::uint32_t));
  else
    std::memcpy(to, from, bytes);
}

/// What compare-and-swap does with one element.
void compare_and_swap_element(std::byte* memory, const void* compare, const void* origin,
                              void* result, std::uint64_t bytes) noexcept;
/// Apply elements of a message to memory. @param data  elements with their gaps
void apply_elements(ompi_op_t& op, ompi_datatype_t& element, std::byte* memory,
                    std::span<const std::byte> data) noexcept;
/// Copy elements, their gaps left alone.
void copy_elements(ompi_datatype_t& element, std::byte* to, const std::byte* from,
                   std::uint64_t bytes) noexcept;

class OperationTransfer;

/// An operation that is not done when its call returns.
///
/// @thread  progress lock held
class RmaOperation : public Operation {
 public:
  /// @param request  of a call that returns one, or nullptr
  RmaOperation(const OperationCall& call, WindowRequest* request);
  ~RmaOperation();
  RmaOperation(const RmaOperation&) = delete;
  RmaOperation& operator=(const RmaOperation&) = delete;

  [[nodiscard]] const OperationCall& call() const noexcept { return call_; }
  [[nodiscard]] WindowRequest* request() const noexcept { return request_; }

  /// Get ready to go out in messages.
  void prepare_messages();
  [[nodiscard]] bool all_sent() const noexcept { return sent_all_; }
  [[nodiscard]] std::size_t block_count() const noexcept { return blocks_.size(); }
  /// The blocks of the next message, with what it says of them.
  /// @param room_bytes  for blocks and payload
  /// @returns  bytes of payload; write_payload() makes them
  std::uint64_t next_blocks(std::vector<Block>& blocks, std::uint64_t room_bytes,
                            MessageHead& head);
  void write_payload(std::span<std::byte> out);
  /// Is the message of those blocks the last one?
  [[nodiscard]] bool ends_with_message() const noexcept { return cursor_->at_end(); }
  /// That message has gone, or found no room: it is asked for again.
  void message_gone();
  void message_not_gone();
  /// Part of the result has come.
  void take_result(std::uint64_t offset_bytes, std::span<const std::byte> data);
  /// Is its result complete, if it has one, and everything sent?
  [[nodiscard]] bool is_done() const noexcept {
    return sent_all_ && (!call_.answers() || result_bytes_ == stream_bytes_);
  }
  /// It is done: results in their places.
  void finish();

  std::uint32_t id = 0;                         ///< its answers name it
  bool by_copies = false;                       ///< the kernel carries it out (CopiedMemory)
  std::unique_ptr<OperationTransfer> transfer;  ///< of one that a BTL carries out

 private:
  void gather_gapped_origin();

  OperationCall call_;
  WindowRequest* request_;
  bool sent_all_ = false;
  std::uint64_t element_bytes_ = 1;  ///< what a message must not cut
  std::uint64_t stream_bytes_ = 0;   ///< of data, with gaps where elements have them
  std::uint64_t result_bytes_ = 0;   ///< that have come
  std::vector<Block> blocks_;
  std::optional<BlockCursor> cursor_;
  std::optional<BlockCursor> before_;  ///< the message that has not gone
  std::uint64_t payload_position_ = 0;
  ByteStream origin_;
  ByteStream result_;
  std::vector<std::byte> gapped_origin_;
  std::vector<std::byte> gapped_result_;
};

/// Give back the memory of lists that are kept for use again.
void forget_lists() noexcept;

}  // namespace overlap::newrma
