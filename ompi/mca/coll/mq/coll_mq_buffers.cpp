// Payload: places as memory, types with gaps packed and unpacked.
// SPDX-License-Identifier: BSD-3-Clause
#include "coll_mq_buffers.hpp"

namespace overlap::coll_mq {
namespace {

enum class Direction : std::uint8_t { pack, unpack };

void convert(const TypedBuffer& buffer, std::span<std::byte> packed, Direction direction) noexcept {
  if (packed.empty()) return;
  opal_convertor_t convertor;
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  iovec piece{packed.data(), packed.size()};
  std::uint32_t pieces = 1;
  std::size_t bytes = packed.size();
  if (direction == Direction::pack) {
    opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &buffer.type->super,
                                             buffer.count, buffer.start, 0, &convertor);
    opal_convertor_pack(&convertor, &piece, &pieces, &bytes);
  } else {
    opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &buffer.type->super,
                                             buffer.count, buffer.start, 0, &convertor);
    opal_convertor_unpack(&convertor, &piece, &pieces, &bytes);
  }
  OBJ_DESTRUCT(&convertor);
}

std::uint64_t extent_of(const ompi_datatype_t& type) noexcept {
  return static_cast<std::uint64_t>(type.super.ub - type.super.lb);
}

/// Vectors of scratch begin where any type may.
constexpr std::uint64_t vector_alignment = 64;

}  // namespace

bool TypedBuffer::is_contiguous() const noexcept {
  const auto most = static_cast<std::size_t>(INT32_MAX);
  return opal_datatype_is_contiguous_memory_layout(
             &type->super, static_cast<std::int32_t>(std::min(count, most))) != 0;
}

void Buffers::trim() noexcept {
  constexpr std::size_t kept_bytes = 4096;
  for (std::vector<std::byte>* each : {&scratch_, &packed_input_, &packed_output_}) {
    if (each->capacity() > kept_bytes) std::vector<std::byte>().swap(*each);
  }
}

void Buffers::clear() noexcept {
  input_ = output_ = {};
  block_bytes_ = vector_bytes_ = scratch_stride_ = 0;
  op_ = nullptr;
  unpacked_ = {};
}

void Buffers::set_block(std::uint64_t block_bytes, std::uint32_t scratch_blocks) {
  clear();
  block_bytes_ = vector_bytes_ = scratch_stride_ = block_bytes;
  scratch_.resize(scratch_blocks * block_bytes);
}

void Buffers::set_input(const TypedBuffer& buffer) {
  if (buffer.is_contiguous()) {
    input_ = {buffer.first_byte(), buffer.bytes()};
    return;
  }
  packed_input_.resize(buffer.bytes());
  input_ = packed_input_;
  convert(buffer, input_, Direction::pack);
}

void Buffers::set_output(const TypedBuffer& buffer, bool reads_too, bool writes) {
  if (buffer.is_contiguous()) {
    output_ = {buffer.first_byte(), buffer.bytes()};
    return;
  }
  packed_output_.resize(buffer.bytes());
  output_ = packed_output_;
  if (reads_too) convert(buffer, output_, Direction::pack);
  if (writes) unpacked_ = buffer;
}

std::uint64_t Buffers::vector_bytes(const TypedBuffer& elements) noexcept {
  if (elements.count == 0) return 0;
  const opal_datatype_t& type = elements.type->super;
  return (elements.count - 1) * extent_of(*elements.type) +
         static_cast<std::uint64_t>(type.true_ub - type.true_lb);
}

std::uint64_t Buffers::share_bytes(const TypedBuffer& elements, std::uint32_t shares) noexcept {
  if (shares == 1) return vector_bytes(elements);
  return (elements.count + shares - 1) / shares * extent_of(*elements.type);
}

void Buffers::set_operation(ompi_op_t& op, const TypedBuffer& elements,
                            std::uint32_t scratch_blocks, std::uint32_t shares) {
  clear();
  op_ = &op;
  elements_ = elements;
  vector_bytes_ = vector_bytes(elements);
  block_bytes_ = share_bytes(elements, shares);
  scratch_stride_ = (block_bytes_ + vector_alignment - 1) / vector_alignment * vector_alignment;
  scratch_.resize(scratch_blocks * scratch_stride_);
}

void Buffers::set_elements(const void* input, void* output) noexcept {
  const std::ptrdiff_t first = elements_.type->super.true_lb;
  if (input != nullptr)
    input_ = {static_cast<std::byte*>(const_cast<void*>(input)) + first, vector_bytes_};
  if (output != nullptr) output_ = {static_cast<std::byte*>(output) + first, vector_bytes_};
}

std::span<std::byte> Buffers::at(const Place& place) noexcept {
  const auto part = [&](std::span<std::byte> whole) {
    // The last block may be a shorter one.
    const std::uint64_t first = std::min<std::uint64_t>(place.first * block_bytes_, whole.size());
    return whole.subspan(
        first, std::min<std::uint64_t>(place.blocks * block_bytes_, whole.size() - first));
  };
  switch (place.buffer) {
    case Buffer::none: break;
    case Buffer::input: return part(input_);
    case Buffer::output: return part(output_);
    case Buffer::scratch: {
      const std::uint64_t before = std::min(place.like * block_bytes_, vector_bytes_);
      const std::uint64_t each = std::min(block_bytes_, vector_bytes_ - before);
      return std::span(scratch_).subspan(place.first * scratch_stride_, place.blocks * each);
    }
  }
  return {};
}

void Buffers::copy(const Place& from, const Place& to) noexcept {
  const std::span<std::byte> source = at(from), target = at(to);
  if (!source.empty()) std::memmove(target.data(), source.data(), source.size());
}

void Buffers::reduce(const Place& from, const Place& to) noexcept {
  const std::span<std::byte> source = at(from), target = at(to);
  if (source.empty()) return;
  const std::ptrdiff_t first = elements_.type->super.true_lb;
  const std::uint64_t extent = extent_of(*elements_.type);
  const auto count = static_cast<int>((source.size() + extent - 1) / extent);
  ompi_op_reduce(op_, source.data() - first, target.data() - first, count, elements_.type);
}

bool Buffers::deliver(std::span<const std::byte> payload, const Place& to) noexcept {
  const std::span<std::byte> target = at(to);
  const std::size_t bytes = std::min(payload.size(), target.size());
  if (bytes != 0) std::memcpy(target.data(), payload.data(), bytes);
  return payload.size() == target.size();
}

void Buffers::finish() noexcept {
  if (unpacked_.type == nullptr) return;
  convert(unpacked_, output_, Direction::unpack);
  unpacked_ = {};
}

}  // namespace overlap::coll_mq
