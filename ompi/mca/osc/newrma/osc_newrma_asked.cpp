// Operations that the owner of the memory carries out at once.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_asked.hpp"

#include <chrono>
#include <cstring>

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

using Clock = std::chrono::steady_clock;

/// Longer than an owner takes that turns the event loop before it looks, and about as long as the
/// kernel's copies of so many blocks.
Clock::duration patience_for(std::size_t blocks) noexcept {
  constexpr std::chrono::nanoseconds least{2000};
  constexpr std::chrono::nanoseconds each{100};
  return std::max(least, each * static_cast<long>(blocks));
}

bool has_data(const OperationCall& call) noexcept {
  return call.kind != Kind::get && call.op != &ompi_mpi_op_no_op.op;
}

/// Look, and carry out what others ask meanwhile, until something has come or time is over.
/// @returns  what the last look has found
template <class Look>
bool look_until(Clock::time_point end, Look&& look) {
  constexpr int looks_per_time = 16;
  for (;;) {
    for (int i = 0; i < looks_per_time; ++i) {
      if (look()) return true;
      LinuxPlatform::pause();
    }
    windows.serve();
    if (Clock::now() >= end) return look();
  }
}

/// @returns  false: the owner has not come, and will not
bool await_answer(RequestSlot<>& slot, Clock::time_point end) {
  const auto is_answered = [&slot] { return slot.is_answered(); };
  if (look_until(end, is_answered)) return true;
  if (slot.try_withdraw()) return false;
  // It is being carried out, which takes a microsecond, or who does it has lost its processor.
  constexpr std::chrono::microseconds yields_after{10};
  while (!look_until(Clock::now() + yields_after, is_answered)) sched_yield();
  return true;
}

/// @returns  false: others ask it all the time, which says nothing of an owner who does not come
bool claim(AskedRow& asked, Clock::duration patience) {
  const auto try_claim = [&asked] { return asked.slot.try_claim(); };
  return try_claim() || look_until(Clock::now() + patience, try_claim);
}

/// @returns  false: it has been taken back
bool post_and_wait(AskedRow& asked, AskingPace& pace, Clock::duration patience) {
  asked.slot.post();
  if (!await_answer(asked.slot, Clock::now() + patience)) {
    pace.note_in_vain();
    return false;
  }
  pace.note_answered();
  return true;
}

node::Place place_of(std::span<const std::byte> bytes) noexcept {
  return {reinterpret_cast<std::uint64_t>(bytes.data()), bytes.size()};
}

/// @param memory  of the block; @param data  as in OperationRow
void carry_out(const RowHead& head, const Block& block, std::byte* memory, std::byte* data) {
  const auto bytes = static_cast<std::size_t>(block.bytes);
  switch (head.kind) {
    case Kind::put: copy_few(memory, data, bytes); break;
    case Kind::get: copy_few(data, memory, bytes); break;
    case Kind::accumulate:
      apply_elements(*op_of_number(head.op), *type_of_number(head.element), memory, {data, bytes});
      break;
    case Kind::get_accumulate: {
      alignas(64) std::array<std::byte, asked_max_bytes> old;
      std::memcpy(old.data(), memory, bytes);
      apply_elements(*op_of_number(head.op), *type_of_number(head.element), memory, {data, bytes});
      std::memcpy(data, old.data(), bytes);
      break;
    }
    case Kind::compare_swap:
      if (std::memcmp(memory, data, bytes) == 0)
        std::memcpy(memory, data + bytes, bytes);
      else
        std::memcpy(data, memory, bytes);
      break;
    case Kind::notice:
    case Kind::data:
    case Kind::key_wanted:
    case Kind::key:
    case Kind::bundle: break;
  }
}

/// @returns  nullptr: the kernel refuses
std::byte* fetch(const AskedRow& asked) noexcept {
  alignas(64) static std::array<std::byte, fetched_max_bytes> fetched;
  FetchedRow row;
  asked.area.read(0, std::as_writable_bytes(std::span(&row, 1)));
  if (row.blocks.bytes + row.data.bytes > fetched.size()) return nullptr;
  return node::fetch(row.from, std::array{row.blocks, row.data}, fetched.data()) ? fetched.data()
                                                                                 : nullptr;
}

}  // namespace

RowHead row_head_of(const OperationCall& call) noexcept {
  const auto number = [](const auto* object, auto member) {
    return static_cast<std::uint16_t>(object != nullptr ? object->*member : 0);
  };
  return {.kind = call.kind,
          .op = number(call.op, &ompi_op_t::o_f_to_c_index),
          .element = number(call.element, &ompi_datatype_t::d_f_to_c_index)};
}

void add_to_row(OperationRow& row, const RowHead& head, const OperationCall& call) noexcept {
  const Block block{call.start + static_cast<std::uint64_t>(call.target_data.type->super.true_lb),
                    call.bytes()};
  OperationRow::Places places{.origin = call.origin, .compare = call.compare, .result = nullptr};
  if (has_data(call) && call.kind != Kind::compare_swap)
    places.origin = call.origin_data.first_byte(call.origin);
  if (call.kind == Kind::compare_swap)
    places.result = call.result;
  else if (call.answers())
    places.result = call.result_data.first_byte(call.result);
  std::byte* const data = row.add(head, block, places);
  if (call.kind == Kind::compare_swap) {
    std::memcpy(data, call.compare, block.bytes);
    std::memcpy(data + block.bytes, call.origin, block.bytes);
  } else if (has_data(call)) {
    std::memcpy(data, places.origin, block.bytes);
  }
}

bool ask_owner(ControlBlock& owner, AskingPace& pace, const RowHead& head,
               std::span<const Block> blocks, std::span<std::byte> data, Others others) {
  AskedRow& asked = owner.asked;
  const Clock::duration patience = patience_for(blocks.size());
  if (!(others == Others::wait ? claim(asked, patience) : asked.slot.try_claim())) return false;
  asked.head = head;
  asked.is_fetched = false;
  asked.count = static_cast<std::uint32_t>(blocks.size());
  asked.area.write(blocks, data);
  if (!post_and_wait(asked, pace, patience)) return false;
  if (head.answers()) asked.area.read(blocks.size(), data);
  asked.slot.release();
  return true;
}

bool ask_to_fetch(ControlBlock& owner, AskingPace& pace, const RowHead& head,
                  std::span<const Block> blocks, std::span<const std::byte> data, bool& may_fetch) {
  AskedRow& asked = owner.asked;
  const Clock::duration patience = patience_for(OperationRow::count_max);
  const FetchedRow row{.from = node::own_process_facts(),
                       .blocks = place_of(std::as_bytes(blocks)),
                       .data = place_of(data)};
  if (!claim(asked, patience)) return false;
  asked.head = head;
  asked.is_fetched = true;
  asked.count = static_cast<std::uint32_t>(blocks.size());
  asked.area.write({}, std::as_bytes(std::span(&row, 1)));
  if (!post_and_wait(asked, pace, patience)) return false;
  may_fetch = !asked.is_refused;
  asked.slot.release();
  return may_fetch;
}

bool ask_owner(ControlBlock& owner, AskingPace& pace, OperationRow& row, Others others) {
  if (!ask_owner(owner, pace, row.head(), row.blocks(), row.data(), others)) return false;
  if (!row.head().answers()) return true;
  row.for_each([&row](std::size_t index, const Block& block, const std::byte* data) {
    std::memcpy(row.places(index).result, data, block.bytes);
  });
  return true;
}

void serve_asked(ControlBlock& own, std::byte* memory) {
  AskedRow& asked = own.asked;
  if (!asked.slot.is_posted() || !asked.slot.try_take()) [[likely]]
    return;
  const RowHead head = asked.head;
  std::byte* area = asked.area.begin();
  if (asked.is_fetched) {
    area = fetch(asked);
    asked.is_refused = area == nullptr;
  }
  const auto carry_out_all = [&] {
    for_each_of_row(area, head, asked.count, [&](const Block& block, std::byte* data) {
      carry_out(head, block, memory + block.address, data);
    });
  };
  if (area == nullptr) {
    // Who has asked finds another way.
  } else if (head.kind == Kind::put || head.kind == Kind::get) {
    carry_out_all();
  } else {
    const AccumulateGuard guard(own);
    carry_out_all();
  }
  asked.slot.answer();
}

}  // namespace overlap::newrma
