// Operations that the owner of the memory carries out at once.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_asked.hpp"

#include <chrono>
#include <cstring>

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

/// Longer than an owner takes that turns the event loop before it looks; shorter than two copies.
constexpr std::chrono::nanoseconds patience{2000};

bool has_data(const OperationCall& call) noexcept {
  return call.kind != Kind::get && call.op != &ompi_mpi_op_no_op.op;
}

void write_request(AskedOperation& asked, const OperationCall& call) noexcept {
  const auto bytes = static_cast<std::uint32_t>(call.bytes());
  asked.kind = call.kind;
  asked.op = call.op != nullptr ? static_cast<std::uint16_t>(call.op->o_f_to_c_index) : 0;
  asked.element =
      call.element != nullptr ? static_cast<std::uint16_t>(call.element->d_f_to_c_index) : 0;
  asked.bytes = bytes;
  asked.start = call.start + static_cast<std::uint64_t>(call.target_data.type->super.true_lb);
  if (call.kind == Kind::compare_swap) {
    std::memcpy(asked.data.data(), call.compare, bytes);
    std::memcpy(asked.data.data() + bytes, call.origin, bytes);
  } else if (has_data(call)) {
    std::memcpy(asked.data.data(), call.origin_data.first_byte(call.origin), bytes);
  }
}

void read_result(const AskedOperation& asked, const OperationCall& call) noexcept {
  if (call.kind == Kind::compare_swap)
    std::memcpy(call.result, asked.result.data(), asked.bytes);
  else if (call.answers())
    std::memcpy(call.result_data.first_byte(call.result), asked.result.data(), asked.bytes);
}

/// @returns  false: the owner has not come, and will not
bool await_answer(RequestSlot<>& slot) {
  constexpr int looks_per_time = 16;
  constexpr unsigned times_per_yield = 64;  // it is through in a microsecond
  const auto begin = std::chrono::steady_clock::now();
  unsigned times = 0;
  for (bool may_withdraw = true;;) {
    for (int i = 0; i < looks_per_time; ++i) {
      if (slot.is_answered()) return true;
      LinuxPlatform::pause();
    }
    windows.serve();
    if (may_withdraw && std::chrono::steady_clock::now() - begin < patience) continue;
    if (may_withdraw && slot.try_withdraw()) return false;
    may_withdraw = false;  // it is being carried out
    if (++times % times_per_yield == 0) sched_yield();
  }
}

void accumulate(AskedOperation& asked, std::byte* memory) {
  ompi_op_t& op = *op_of_number(asked.op);
  if (asked.kind == Kind::get_accumulate) std::memcpy(asked.result.data(), memory, asked.bytes);
  apply_elements(op, *type_of_number(asked.element), memory, {asked.data.data(), asked.bytes});
}

void compare_swap(AskedOperation& asked, std::byte* memory) {
  std::memcpy(asked.result.data(), memory, asked.bytes);
  if (std::memcmp(memory, asked.data.data(), asked.bytes) == 0)
    std::memcpy(memory, asked.data.data() + asked.bytes, asked.bytes);
}

}  // namespace

bool can_ask(const OperationCall& call) noexcept {
  return call.bytes() != 0 && call.bytes() <= AskedOperation::bytes_max;
}

bool ask_owner(ControlBlock& owner, const OperationCall& call, AskingPace& pace) {
  AskedOperation& asked = owner.asked;
  if (!pace.may_ask() || !asked.slot.try_claim()) return false;
  write_request(asked, call);
  asked.slot.post();
  if (!await_answer(asked.slot)) {
    pace.note_in_vain();
    return false;
  }
  read_result(asked, call);
  asked.slot.release();
  pace.note_answered();
  return true;
}

void serve_asked(ControlBlock& own, std::byte* memory) {
  AskedOperation& asked = own.asked;
  if (!asked.slot.is_posted() || !asked.slot.try_take()) [[likely]]
    return;
  std::byte* const place = memory + asked.start;
  if (asked.kind == Kind::put) {
    std::memcpy(place, asked.data.data(), asked.bytes);
  } else if (asked.kind == Kind::get) {
    std::memcpy(asked.result.data(), place, asked.bytes);
  } else {
    const AccumulateGuard guard(own);
    if (asked.kind == Kind::compare_swap)
      compare_swap(asked, place);
    else
      accumulate(asked, place);
  }
  asked.slot.answer();
}

}  // namespace overlap::newrma
