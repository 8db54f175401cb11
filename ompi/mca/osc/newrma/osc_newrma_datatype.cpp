// Datatypes: ranges, blocks and streams.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_datatype.hpp"

namespace overlap::newrma {
namespace {

/// Call f(address, bytes) for each piece of memory of the data, in the order of its bytes.
template <class F>
void for_each_piece(const TypedCount& data, std::uint64_t start, F&& f) {
  // The convertor computes with pointers and must not see a null one: all are moved.
  constexpr std::uint64_t moved = std::uint64_t{1} << 46U;
  opal_convertor_t convertor;
  OBJ_CONSTRUCT(&convertor, opal_convertor_t);
  opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &data.type->super, data.count,
                                           reinterpret_cast<void*>(start + moved), 0, &convertor);
  for (bool done = false; !done;) {
    std::array<iovec, 64> pieces;
    auto count = static_cast<std::uint32_t>(pieces.size());
    std::size_t bytes = SIZE_MAX;
    done = opal_convertor_raw(&convertor, pieces.data(), &count, &bytes) == 1;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (pieces[i].iov_len != 0)
        f(reinterpret_cast<std::uint64_t>(pieces[i].iov_base) - moved, pieces[i].iov_len);
    }
  }
  OBJ_DESTRUCT(&convertor);
}

/// Pieces of memory, joined where one continues the other.
template <class Take>
class Joined {
 public:
  explicit Joined(Take& take) noexcept : take_(take) {}
  void add(std::uint64_t address, std::uint64_t bytes) {
    if (block_.address + block_.bytes == address && block_.bytes != 0) {
      block_.bytes += bytes;
      return;
    }
    end();
    block_ = {address, bytes};
  }
  void end() {
    if (block_.bytes != 0) take_(block_);
  }

 private:
  Take& take_;
  Block block_;
};

/// for_each_block(), and blocks_of().
template <class Take>
void visit_blocks(const TypedCount& data, std::uint64_t start, const ompi_datatype_t* element,
                  Take&& take) {
  if (data.bytes() == 0) return;
  Joined blocks(take);
  if (element != nullptr && has_gaps(*element)) {
    // An element begins where its first byte is; its other bytes, and the gaps, have fixed places.
    const std::uint64_t size = element->super.size, stride = stride_of(*element);
    std::uint64_t position = 0;
    for_each_piece(data, start, [&](std::uint64_t address, std::uint64_t bytes) {
      for (std::uint64_t i = (size - position % size) % size; i < bytes; i += size)
        blocks.add(address + i, stride);
      position += bytes;
    });
  } else if (data.is_contiguous()) {
    blocks.add(start + static_cast<std::uint64_t>(data.type->super.true_lb), data.bytes());
  } else {
    for_each_piece(data, start, [&blocks](std::uint64_t address, std::uint64_t bytes) {
      blocks.add(address, bytes);
    });
  }
  blocks.end();
}

/// Has MPI a name for a predefined type? Those of MPI_Type_create_f90_real and the like are
/// predefined, too, but only this process has a number for them.
bool is_named(const ompi_datatype_t& type) noexcept {
  std::int32_t integers = 0, addresses = 0, types = 0, combiner = MPI_COMBINER_NAMED;
  ompi_datatype_get_args(&type, 0, &integers, nullptr, &addresses, nullptr, &types, nullptr,
                         &combiner);
  return combiner == MPI_COMBINER_NAMED;
}

}  // namespace

Range range_of(const TypedCount& data) noexcept {
  if (data.bytes() == 0) return {};
  const opal_datatype_t& type = data.type->super;
  const std::int64_t last = static_cast<std::int64_t>(data.count - 1) * (type.ub - type.lb);
  return {std::min<std::int64_t>(0, last) + type.true_lb,
          std::max<std::int64_t>(0, last) + type.true_ub};
}

std::vector<Block> blocks_of(const TypedCount& data, std::uint64_t start,
                             const ompi_datatype_t* element, std::vector<Block> memory) {
  std::vector<Block> blocks = std::move(memory);
  blocks.clear();
  visit_blocks(data, start, element, [&blocks](const Block& each) { blocks.push_back(each); });
  return blocks;
}

void for_each_block(const TypedCount& data, std::uint64_t start, const ompi_datatype_t* element,
                    void (*take)(void* context, const Block& block), void* context) {
  visit_blocks(data, start, element, [=](const Block& each) { take(context, each); });
}

ompi_datatype_t* element_of(ompi_datatype_t& type) noexcept {
  ompi_datatype_t* const made_of = ompi_datatype_get_single_predefined_type_from_args(&type);
  if (made_of == nullptr || is_named(*made_of)) return made_of;
  return const_cast<ompi_datatype_t*>(ompi_datatype_basicDatatypes[made_of->id]);
}

ompi_datatype_t* type_of_number(std::uint16_t number) noexcept {
  return static_cast<ompi_datatype_t*>(
      opal_pointer_array_get_item(&ompi_datatype_f_to_c_table, number));
}

ompi_op_t* op_of_number(std::uint16_t number) noexcept {
  return static_cast<ompi_op_t*>(opal_pointer_array_get_item(ompi_op_f_to_c_table, number));
}

void ByteStream::open(void* buffer, const TypedCount& data) {
  data_ = data;
  buffer_ = buffer;
  if (data.bytes() != 0 && data.is_contiguous())
    start_ = static_cast<std::byte*>(buffer) + data.type->super.true_lb;
}

ByteStream::~ByteStream() {
  if (convertor_ != nullptr) OBJ_DESTRUCT(convertor_.get());
}

opal_convertor_t& ByteStream::convertor(bool reading) {
  if (convertor_ == nullptr) {
    convertor_ = std::make_unique<opal_convertor_t>();
    opal_convertor_t* made = convertor_.get();
    OBJ_CONSTRUCT(made, opal_convertor_t);
    if (reading) {
      opal_convertor_copy_and_prepare_for_send(ompi_mpi_local_convertor, &data_.type->super,
                                               data_.count, buffer_, 0, made);
    } else {
      opal_convertor_copy_and_prepare_for_recv(ompi_mpi_local_convertor, &data_.type->super,
                                               data_.count, buffer_, 0, made);
    }
  }
  return *convertor_;
}

std::size_t ByteStream::pack(std::span<std::byte> out) {
  iovec piece{out.data(), out.size()};
  std::uint32_t pieces = 1;
  std::size_t bytes = out.size();
  opal_convertor_pack(&convertor(true), &piece, &pieces, &bytes);
  return bytes;
}

std::size_t ByteStream::take_kept(std::span<std::byte> out) noexcept {
  const std::size_t bytes = std::min(out.size(), kept_end_ - kept_begin_);
  std::memcpy(out.data(), kept_.data() + kept_begin_, bytes);
  kept_begin_ += bytes;
  return bytes;
}

/// Go on elsewhere: a message has found no room after it was read.
void ByteStream::skip_to(std::uint64_t position) {
  std::size_t begin = 0;
  opal_convertor_set_position(&convertor(true), &begin);
  read_bytes_ = kept_begin_ = kept_end_ = 0;
  std::array<std::byte, 4096> skipped;
  while (read_bytes_ < position)
    read(read_bytes_, std::span(skipped).first(std::min(skipped.size(), position - read_bytes_)));
}

void ByteStream::read(std::uint64_t position, std::span<std::byte> out) {
  if (out.empty()) return;
  if (start_ != nullptr) {
    std::memcpy(out.data(), start_ + position, out.size());
    return;
  }
  if (position != read_bytes_) skip_to(position);
  read_bytes_ += out.size();
  out = out.subspan(take_kept(out));
  if (!out.empty()) out = out.subspan(pack(out));
  if (out.empty()) return;
  kept_begin_ = 0;
  kept_end_ = pack(kept_);
  static_cast<void>(take_kept(out));
}

void ByteStream::write(std::uint64_t position, std::span<const std::byte> in) {
  if (in.empty()) return;
  if (start_ != nullptr) {
    std::memcpy(start_ + position, in.data(), in.size());
    return;
  }
  opal_convertor_t& converts = convertor(false);
  set_unpack_position(converts, position);
  iovec piece{const_cast<std::byte*>(in.data()), in.size()};
  std::uint32_t pieces = 1;
  std::size_t bytes = in.size();
  opal_convertor_unpack(&converts, &piece, &pieces, &bytes);
}

}  // namespace overlap::newrma
