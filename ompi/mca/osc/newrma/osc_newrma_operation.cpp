// Operations: carried out directly, or cut into messages.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_operation.hpp"

#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "osc_newrma_transfer.hpp"

namespace overlap::newrma {
namespace {

/// Data with gaps, on one side at least, and of different types. Open MPI's ompi_datatype_sndrcv is
/// no help: behind 64 KiB of some types it copies wrong bytes (4.1).
void copy_streams(const void* from, const TypedCount& from_data, void* to,
                  const TypedCount& to_data, std::uint64_t bytes) {
  ByteStream source, target;
  source.open(const_cast<void*>(from), from_data);
  target.open(to, to_data);
  if (to_data.is_contiguous()) {
    source.read(0, {to_data.first_byte(to), bytes});
    return;
  }
  if (from_data.is_contiguous()) {
    target.write(0, {from_data.first_byte(from), bytes});
    return;
  }
  std::array<std::byte, 16384> piece;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto next = std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at));
    source.read(at, next);
    target.write(at, next);
    at += next.size();
  }
}

void copy(const void* from, const TypedCount& from_data, void* to, const TypedCount& to_data) {
  const std::uint64_t bytes = std::min(from_data.bytes(), to_data.bytes());
  if (bytes == 0) return;
  if (from_data.is_contiguous() && to_data.is_contiguous())
    std::memcpy(to_data.first_byte(to), from_data.first_byte(from), bytes);
  else if (from_data.type == to_data.type)
    ompi_datatype_copy_content_same_ddt(to_data.type, std::min(from_data.count, to_data.count),
                                        static_cast<char*>(to),
                                        static_cast<char*>(const_cast<void*>(from)));
  else
    copy_streams(from, from_data, to, to_data, bytes);
}

/// Lists of operations that are done: fresh memory for a long one costs more than the blocks in it,
/// page fault by page fault. @thread  progress lock held
class SpareLists {
 public:
  [[nodiscard]] std::vector<Block> take() noexcept {
    return count_ == 0 ? std::vector<Block>() : std::move(lists_[--count_]);
  }
  void give(std::vector<Block>& list) noexcept {
    const bool pays = list.capacity() >= blocks_min && list.capacity() <= blocks_max;
    if (pays && count_ < lists_.size()) lists_[count_++] = std::move(list);
  }

 private:
  static constexpr std::size_t blocks_min = 256;                    // 4 KiB
  static constexpr std::size_t blocks_max = std::size_t{1} << 17U;  // 2 MiB

  std::array<std::vector<Block>, 4> lists_;
  std::size_t count_ = 0;
};
SpareLists& spare_lists = never_destroyed<SpareLists>();

bool is_replace(const ompi_op_t* op) noexcept { return op == &ompi_mpi_op_replace.op; }
bool is_no_op(const ompi_op_t* op) noexcept { return op == &ompi_mpi_op_no_op.op; }

/// What an accumulate that computes does to mapped memory, element by element with their gaps.
/// Open MPI's ompi_osc_base_sndrcv_op is no help: it takes an MPI_SHORT_INT for six bytes.
///
/// @thread  progress lock held
class Reduction {
 public:
  explicit Reduction(const OperationCall& call) : call_(call) {
    if (!computes()) return;
    const ompi_datatype_t& element = *call.element;
    if (call.origin_data.type == &element ||
        (!has_gaps(element) && call.origin_data.is_contiguous())) {
      data_ = call.origin_data.first_byte(call.origin);
      return;
    }
    const TypedCount elements{call.element, call.bytes() / element.super.size};
    gathered_.resize(elements.count * stride_of(element));
    copy(call.origin, call.origin_data, gathered_.data(), elements);
    data_ = gathered_.data();
  }
  Reduction(const Reduction&) = delete;
  Reduction& operator=(const Reduction&) = delete;

  void apply(std::byte* memory) const noexcept {
    if (!computes()) return;
    const std::byte* data = data_;
    const auto start = reinterpret_cast<std::uint64_t>(memory);
    for_each_block(call_.target_data, start, call_.element, [&](const Block& each) {
      apply_elements(*call_.op, *call_.element, reinterpret_cast<std::byte*>(each.address),
                     {data, each.bytes});
      data += each.bytes;
    });
  }

 private:
  [[nodiscard]] bool computes() const noexcept {
    return call_.op != nullptr && !is_no_op(call_.op) && !is_replace(call_.op);
  }

  const OperationCall& call_;
  std::vector<std::byte> gathered_;
  const std::byte* data_ = nullptr;
};

/// May the program free a type before the operation is done? References are counted by MPI threads
/// only; the interrupt thread makes operations on predefined types.
bool may_go(const ompi_datatype_t* type) noexcept {
  return type != nullptr && !ompi_datatype_is_predefined(type);
}

}  // namespace

void forget_lists() noexcept { spare_lists = {}; }

void compare_and_swap_element(std::byte* memory, const void* compare, const void* origin,
                              void* result, std::uint64_t bytes) noexcept {
  // The result may take the place of what is compared with.
  const bool equal = std::memcmp(memory, compare, bytes) == 0;
  std::memcpy(result, memory, bytes);
  if (equal) std::memcpy(memory, origin, bytes);
}

void copy_directly(const OperationCall& call, std::byte* memory) {
  if (call.kind == Kind::get)
    copy(memory, call.target_data, call.result, call.result_data);
  else
    copy(call.origin, call.origin_data, memory, call.target_data);
}

void accumulate_directly(const OperationCall& call, std::byte* memory, ControlBlock& control) {
  const Reduction reduction(call);
  const AccumulateGuard guard(control);
  if (call.kind == Kind::compare_swap) {
    compare_and_swap_element(memory, call.compare, call.origin, call.result, call.bytes());
    return;
  }
  if (call.kind == Kind::get_accumulate)
    copy(memory, call.target_data, call.result, call.result_data);
  if (is_replace(call.op))
    copy(call.origin, call.origin_data, memory, call.target_data);
  else
    reduction.apply(memory);
}

void copy_elements(ompi_datatype_t& element, std::byte* to, const std::byte* from,
                   std::uint64_t bytes) noexcept {
  if (!has_gaps(element)) {
    std::memcpy(to, from, bytes);
    return;
  }
  ompi_datatype_copy_content_same_ddt(&element, bytes / stride_of(element),
                                      reinterpret_cast<char*>(to),
                                      reinterpret_cast<char*>(const_cast<std::byte*>(from)));
}

void apply_elements(ompi_op_t& op, ompi_datatype_t& element, std::byte* memory,
                    std::span<const std::byte> data) noexcept {
  if (is_no_op(&op)) return;
  if (is_replace(&op)) {
    copy_elements(element, memory, data.data(), data.size());
    return;
  }
  // A division takes as long as an atomic operation.
  const std::uint64_t stride_bytes = stride_of(element);
  std::uint64_t count = data.size() == stride_bytes ? 1 : data.size() / stride_bytes;
  constexpr std::uint64_t count_max = std::uint64_t{1} << 30U;  // an int of Open MPI's
  for (; count > count_max; count -= count_max) {
    ompi_op_reduce(&op, const_cast<std::byte*>(data.data()), memory, count_max, &element);
    memory += count_max * stride_bytes;
    data = data.subspan(count_max * stride_bytes);
  }
  ompi_op_reduce(&op, const_cast<std::byte*>(data.data()), memory, static_cast<int>(count),
                 &element);
}

RmaOperation::RmaOperation(const OperationCall& call, WindowRequest* request)
    : call_(call), request_(request) {
  writes = call.writes();
  for (const TypedCount* data : {&call_.origin_data, &call_.result_data, &call_.target_data}) {
    if (may_go(data->type)) OBJ_RETAIN(data->type);
  }
}

RmaOperation::~RmaOperation() {
  spare_lists.give(blocks_);
  for (const TypedCount* data : {&call_.origin_data, &call_.result_data, &call_.target_data}) {
    ompi_datatype_t* type = data->type;
    if (may_go(type)) OBJ_RELEASE(type);
  }
}

/// Elements with gaps travel with them, so that both sides compute with the type itself.
void RmaOperation::gather_gapped_origin() {
  const TypedCount elements{call_.element, call_.bytes() / call_.element->super.size};
  stream_bytes_ = elements.count * stride_of(*call_.element);
  if (call_.answers()) gapped_result_.resize(stream_bytes_);
  if (is_no_op(call_.op)) return;
  gapped_origin_.resize(stream_bytes_);
  copy(call_.origin, call_.origin_data, gapped_origin_.data(), elements);
}

void RmaOperation::prepare_messages() {
  stream_bytes_ = call_.bytes();
  if (call_.element != nullptr) {
    element_bytes_ = stride_of(*call_.element);
    if (has_gaps(*call_.element)) gather_gapped_origin();
  }
  blocks_ = blocks_of(call_.target_data, call_.start, call_.element, spare_lists.take());
  cursor_.emplace(blocks_);
  sent_all_ = stream_bytes_ == 0;
  if (call_.kind == Kind::compare_swap) {
    element_bytes_ = stream_bytes_;
  } else if (call_.origin_data.type != nullptr) {
    origin_.open(const_cast<void*>(call_.origin), call_.origin_data);
  }
  if (call_.answers()) result_.open(call_.result, call_.result_data);
}

std::uint64_t RmaOperation::next_blocks(std::vector<Block>& blocks, std::uint64_t room_bytes,
                                        MessageHead& head) {
  const bool with_data = call_.kind != Kind::get && !is_no_op(call_.op);
  before_ = cursor_;
  payload_position_ = cursor_->position();
  head.kind = call_.kind;
  head.id = id;
  head.value = payload_position_;
  if (call_.op != nullptr) head.op = static_cast<std::uint16_t>(call_.op->o_f_to_c_index);
  if (call_.element != nullptr)
    head.element = static_cast<std::uint16_t>(call_.element->d_f_to_c_index);
  // What is answered is answered in one message.
  const bool one_answer = call_.kind == Kind::get_accumulate;
  std::uint64_t bytes = cursor_->take(blocks, room_bytes, element_bytes_, with_data || one_answer);
  if (call_.kind == Kind::compare_swap) bytes *= 2;
  return with_data ? bytes : 0;
}

void RmaOperation::write_payload(std::span<std::byte> out) {
  if (call_.kind == Kind::compare_swap) {
    std::memcpy(out.data(), call_.compare, out.size() / 2);
    std::memcpy(out.data() + out.size() / 2, call_.origin, out.size() / 2);
  } else if (!gapped_origin_.empty()) {
    std::memcpy(out.data(), gapped_origin_.data() + payload_position_, out.size());
  } else {
    origin_.read(payload_position_, out);
  }
}

void RmaOperation::message_not_gone() { cursor_ = before_; }

void RmaOperation::message_gone() { sent_all_ = cursor_->at_end(); }

void RmaOperation::take_result(std::uint64_t offset_bytes, std::span<const std::byte> data) {
  result_bytes_ += data.size();
  if (gapped_result_.empty())
    result_.write(offset_bytes, data);
  else
    std::memcpy(gapped_result_.data() + offset_bytes, data.data(), data.size());
}

void RmaOperation::finish() {
  if (gapped_result_.empty()) return;
  const TypedCount elements{call_.element, gapped_result_.size() / stride_of(*call_.element)};
  copy(gapped_result_.data(), elements, call_.result, call_.result_data);
}

}  // namespace overlap::newrma
