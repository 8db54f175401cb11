// Copies in pieces.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_later.hpp"

namespace overlap::newrma {
namespace {

// 30 us of copying: a socket's buffers are far from empty after that.
constexpr std::uint64_t piece_max_bytes = std::uint64_t{1} << 18U;

bool is_in_one_piece(const OperationCall& call) noexcept {
  return call.own_data().is_contiguous() && call.target_data.is_contiguous() &&
         call.own_data().bytes() == call.bytes();
}

void copy_part(const OperationCall& call, std::byte* memory, std::uint64_t begin,
               std::uint64_t bytes) noexcept {
  std::byte* const there = call.target_data.first_byte(memory) + begin;
  if (call.kind == Kind::get)
    std::memmove(call.own_first_byte() + begin, there, bytes);
  else
    std::memmove(there, call.own_first_byte() + begin, bytes);
}

}  // namespace

RmaOperation* LaterCopies::copy_piece() {
  const Copy first = waiting_.front();
  const OperationCall& call = first.operation->call();
  if (is_in_one_piece(call)) {
    const std::uint64_t bytes = std::min(piece_max_bytes, call.bytes() - copied_bytes_);
    copy_part(call, first.memory, copied_bytes_, bytes);
    copied_bytes_ += bytes;
    if (copied_bytes_ < call.bytes()) return nullptr;
  } else {
    copy_directly(call, first.memory);
  }
  copied_bytes_ = 0;
  waiting_.pop();
  return first.operation;
}

}  // namespace overlap::newrma
