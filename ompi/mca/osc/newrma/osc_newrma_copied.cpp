// Operations by copies of the kernel.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_copied.hpp"

#include "ompi/mca/common/overlap/kernel_copy.hpp"
#include "ompi/mca/common/overlap/process.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

#include "osc_newrma_keys.hpp"
#include "osc_newrma_window.hpp"
#include "protocol/near_blocks.hpp"

namespace overlap::newrma {
namespace {

// The data of a longer accumulate does not lie on the stack meanwhile.
constexpr std::uint64_t stack_max_bytes = 2048;
// It lies here, before and after: memory that is given back each time is the system's each time.
std::vector<std::byte>& long_data = never_destroyed<std::vector<std::byte>>();
std::vector<std::byte>& long_old = never_destroyed<std::vector<std::byte>>();
// The same of operations piece by piece, and what is read at a time.
std::vector<std::byte>& pieces = never_destroyed<std::vector<std::byte>>();
std::vector<std::byte>& old_pieces = never_destroyed<std::vector<std::byte>>();
std::vector<std::byte>& near_bytes = never_destroyed<std::vector<std::byte>>();
// The bytes of several blocks.
std::vector<std::byte>& packed = never_destroyed<std::vector<std::byte>>();
// Packed or unpacked at a time.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 16U;
// From so many blocks on one call of the kernel for many pays for the look at whom it reaches.
constexpr std::size_t scatter_min_blocks = 4;

std::uint64_t target_start(const OperationCall& call) noexcept {
  return call.start + static_cast<std::uint64_t>(call.target_data.type->super.true_lb);
}

/// What has been written in part cannot go another way.
[[noreturn]] void abort_in_the_middle() {
  show_message(
      "osc/newrma: the kernel has copied part of an operation to a window of another process of "
      "this node, and refuses the rest. The job ends.\nFree or unmap the memory of a window "
      "behind MPI_Win_free only, and make windows of memory that may be written. Where a sandbox "
      "forbids such copies, run with --mca btl_vader_single_copy_mechanism none.");
  abort_job(MPI_ERR_RMA_RANGE);
}

bool lies_in_a_page(std::uint64_t address, std::uint64_t bytes) noexcept {
  constexpr std::uint64_t page_bytes = 4096;
  return address / page_bytes == (address + bytes - 1) / page_bytes;
}

/// How much the kernel copies for an operation whose owner is not asked just now. One that has been
/// there is looked for again soon.
std::uint64_t kernel_room(const AskingPace* asking) noexcept {
  constexpr std::uint32_t short_pause = 8;
  constexpr std::uint64_t few_bytes = 8192;
  return asking != nullptr && asking->pause() <= short_pause ? few_bytes : piece_bytes;
}

/// @returns  false: it has not been carried out
bool ask_for_piece(ControlBlock& owner, AskingPace& pace, const RowHead& row,
                   std::span<const Block> blocks, std::span<std::byte> payload, bool& may_fetch) {
  if (blocks.size_bytes() + payload.size() <= OperationRow::room_bytes)
    return ask_owner(owner, pace, row, blocks, payload);
  return ask_to_fetch(owner, pace, row, blocks, payload, may_fetch);
}

/// The kernel copies a piece: as many blocks take the time of a short operation.
void note_piece(AskingPace& pace, std::size_t blocks) noexcept {
  constexpr std::size_t blocks_per_operation = 4;
  pace.note_long(static_cast<std::uint32_t>(blocks / blocks_per_operation));
}

bool is_no_op(const OperationCall& call) noexcept { return call.op == &ompi_mpi_op_no_op.op; }

}  // namespace

void forget_buffers() noexcept {
  for (std::vector<std::byte>* const each :
       {&long_data, &long_old, &pieces, &old_pieces, &near_bytes, &packed})
    *each = {};
}

std::uint64_t target_address(const WindowMemory& memory, const OperationCall& call) noexcept {
  return memory.address_of(call.target) + call.start +
         static_cast<std::uint64_t>(range_of(call.target_data).begin);
}

bool are_copied_at_once(Endpoint& endpoint, WindowMemory& memory, const OperationCall& call) {
  if (memory.refuses_copies(call.target)) return false;
  Rail& rail = *transfer_rail(endpoint);
  if (copies_at_once(rail, target_address(memory, call))) return true;
  if (rail.copies == Rail::Copies::unknown) memory.refuse_copies(call.target);
  return false;
}

std::optional<CopiedMemory> CopiedMemory::of(Endpoint& endpoint, WindowMemory& memory,
                                             const OperationCall& call) {
  ControlBlock* const control = memory.control_of(call.target);
  if (control == nullptr || !kernel_copies(endpoint)) return {};
  if (!are_copied_at_once(endpoint, memory, call)) return {};
  return CopiedMemory(*transfer_rail(endpoint), memory, call.target, *control);
}

bool CopiedMemory::can_carry_out(const OperationCall& call) noexcept {
  return call.element == nullptr || !has_gaps(*call.element);
}

bool CopiedMemory::is_simple(const OperationCall& call) noexcept {
  if (!can_carry_out(call) || !call.target_data.is_contiguous()) return false;
  if (!call.accumulates())
    return call.bytes() <= simple_max_bytes && call.own_data().is_contiguous() &&
           call.own_data().bytes() >= call.bytes();
  return call.bytes() <= simple_max_bytes && (is_no_op(call) || call.origin_data.is_contiguous()) &&
         (!call.answers() || call.result_data.is_contiguous());
}

bool CopiedMemory::read(std::uint64_t start, std::span<std::byte> to) {
  const bool ok = copy_at_once(rail_, rail_.btl().btl_get, address_ + start, to);
  if (!ok) memory_.refuse_copies(target_);
  return ok;
}

bool CopiedMemory::write(std::uint64_t start, std::span<const std::byte> from) {
  const std::span<std::byte> unchanged(const_cast<std::byte*>(from.data()), from.size());
  const bool ok = copy_at_once(rail_, rail_.btl().btl_put, address_ + start, unchanged);
  if (!ok && has_written_) abort_in_the_middle();
  if (!ok) memory_.refuse_copies(target_);
  has_written_ = ok;
  return ok;
}

bool CopiedMemory::carry_out(const OperationCall& call) {
  if (call.kind == Kind::put)
    return write(target_start(call), {call.own_first_byte(), call.bytes()});
  if (call.kind == Kind::get)
    return read(target_start(call), {call.own_first_byte(), call.bytes()});
  if (call.kind != Kind::compare_swap) return accumulate(call);
  old_pieces.resize(call.bytes());  // the result may take the place of what is compared with
  if (!compare_swap(call, old_pieces)) return false;
  std::memcpy(call.result, old_pieces.data(), old_pieces.size());
  return true;
}

bool CopiedMemory::compare_swap(const OperationCall& call, std::span<std::byte> old) {
  const AccumulateGuard guard(control_);
  if (!read(call.start, old)) return false;
  return std::memcmp(old.data(), call.compare, old.size()) != 0 ||
         write(call.start, {static_cast<const std::byte*>(call.origin), old.size()});
}

bool CopiedMemory::accumulate(const OperationCall& call) {
  alignas(64) std::array<std::byte, stack_max_bytes> place;
  const bool is_short = call.bytes() <= stack_max_bytes;
  if (!is_short && long_data.size() < call.bytes()) long_data.resize(call.bytes());
  const std::span<std::byte> data(is_short ? place.data() : long_data.data(), call.bytes());
  const std::byte* const origin =
      is_no_op(call) ? nullptr : call.origin_data.first_byte(call.origin);
  const Block block{target_start(call), data.size()};
  const bool in_a_page = lies_in_a_page(address_ + block.address, block.bytes);
  // Others wait for the guard: what is allocated is allocated before.
  if (!in_a_page && long_old.size() < data.size()) long_old.resize(data.size());
  if (!in_a_page) set_places({&block, 1});
  const AccumulateGuard guard(control_);
  // That tells with one call of the kernel whose memory it is, too.
  const bool fetched = !in_a_page && node::fetch(control_.process, places_, data.data());
  if (!fetched && !read(target_start(call), data)) return false;
  if (call.answers())
    std::memcpy(call.result_data.first_byte(call.result), data.data(), data.size());
  if (is_no_op(call)) return true;
  if (in_a_page) {
    apply_elements(*call.op, *call.element, data.data(), {origin, data.size()});
    return write(block.address, data);
  }
  const std::span<std::byte> old = std::span(long_old).first(data.size());
  std::ranges::copy(data, old.begin());
  apply_elements(*call.op, *call.element, data.data(), {origin, data.size()});
  return write_or_restore({&block, 1}, data, old, fetched);
}

/// Call take(bytes) with what the blocks hold, in their order, piece by piece. Blocks that lie near
/// each other are read at once, with the gaps between them.
template <class Take>
bool CopiedMemory::read_blocks(std::span<const Block> blocks, Take&& take) {
  near_bytes.resize(piece_bytes);  // accumulates have done that before they lock others out
  while (!blocks.empty()) {
    const std::span<const Block> near = blocks.first(near_blocks(blocks, piece_bytes));
    const std::uint64_t begin = near.front().address;
    const std::uint64_t end = near.back().address + near.back().bytes;
    for (std::uint64_t at = begin; at < end; at += piece_bytes) {
      const std::span<std::byte> piece(near_bytes.data(), std::min(piece_bytes, end - at));
      if (!read(at, piece)) return false;
      if (near.size() == 1) take(piece);
    }
    if (near.size() > 1) {
      std::byte* to = near_bytes.data();
      for (const Block& each : near) {
        std::memmove(to, near_bytes.data() + (each.address - begin), each.bytes);
        to += each.bytes;
      }
      take(std::span(near_bytes.data(), to));
    }
    blocks = blocks.subspan(near.size());
  }
  return true;
}

bool CopiedMemory::write_blocks(std::span<const Block> blocks, std::span<const std::byte> payload) {
  if (blocks.size() >= scatter_min_blocks && scatters_) {
    set_places(blocks);
    const std::uint64_t written =
        node::scatter(control_.process, places_, payload.data()).value_or(0);
    if (written != 0 && written != payload.size()) abort_in_the_middle();
    scatters_ = written == payload.size();
    has_written_ = has_written_ || scatters_;
    if (scatters_) return true;
  }
  for (const Block& each : blocks) {
    if (!write(each.address, payload.first(each.bytes))) return false;
    payload = payload.subspan(each.bytes);
  }
  return true;
}

void CopiedMemory::set_places(std::span<const Block> blocks) {
  places_.clear();
  places_.reserve(blocks.size());
  for (const Block& each : blocks) places_.push_back({address_ + each.address, each.bytes});
}

/// Write what must not be written a second time. The kernel may refuse the second page of a block.
/// @param blocks  as in places_
/// @param old     what is there now
/// @param fetched  from that process, and by this call of MPI
/// @returns  false: it has refused, and the old bytes are there
bool CopiedMemory::write_or_restore(std::span<const Block> blocks,
                                    std::span<const std::byte> payload,
                                    std::span<const std::byte> old, bool fetched) {
  const std::optional<std::uint64_t> written =
      fetched ? node::scatter_fetched(control_.process, places_, payload.data())
              : node::scatter(control_.process, places_, payload.data());
  // The BTL may have another way to the memory (XPMEM).
  if (!written) return write_blocks(blocks, payload);
  if (*written == payload.size()) return true;
  memory_.refuse_copies(target_);
  // The owner may have closed a page in between.
  if (*written != 0 && node::scatter(control_.process, places_, old.data()).value_or(0) < *written)
    abort_in_the_middle();
  return false;
}

/// Blocks of an accumulate; what was there before comes to be in old_pieces.
bool CopiedMemory::accumulate_blocks(const OperationCall& call, std::span<const Block> blocks,
                                     std::span<const std::byte> payload) {
  old_pieces.clear();
  old_pieces.reserve(bytes_of(blocks));
  pieces.reserve(bytes_of(blocks));
  near_bytes.resize(piece_bytes);
  set_places(blocks);
  const AccumulateGuard guard(control_);
  const bool has_read = read_blocks(blocks, [](std::span<const std::byte> bytes) {
    old_pieces.insert(old_pieces.end(), bytes.begin(), bytes.end());
  });
  if (!has_read) return false;
  if (is_no_op(call)) return true;
  pieces = old_pieces;
  apply_elements(*call.op, *call.element, pieces.data(), payload);
  return write_or_restore(blocks, pieces, old_pieces, false);
}

bool CopiedMemory::carry_out_message(RmaOperation& operation, std::span<const Block> blocks,
                                     std::span<const std::byte> payload, std::uint64_t position) {
  const OperationCall& call = operation.call();
  has_written_ = false;  // the messages before have been carried out whole
  if (call.kind == Kind::put) return write_blocks(blocks, payload);
  if (call.kind == Kind::get) {
    return read_blocks(blocks, [&](std::span<const std::byte> bytes) {
      operation.take_result(position, bytes);
      position += bytes.size();
    });
  }
  if (call.kind == Kind::compare_swap) {
    old_pieces.resize(call.bytes());
    if (!compare_swap(call, old_pieces)) return false;
  } else if (!accumulate_blocks(call, blocks, payload)) {
    return false;
  }
  if (call.answers()) operation.take_result(position, old_pieces);
  return true;
}

bool CopiedMemory::carry_out(RmaOperation& operation, AskingPace* asking) {
  const RowHead row = row_head_of(operation.call());
  std::vector<Block> blocks;
  bool may_fetch = true;
  constexpr std::uint64_t row_bytes = OperationRow::room_bytes;
  while (!operation.all_sent()) {
    const bool asks = asking != nullptr && asking->may_ask();
    const bool fetches = asks && may_fetch && asking->is_answered();
    MessageHead head;
    blocks.clear();
    std::uint64_t payload_bytes = operation.next_blocks(blocks,
                                                        fetches ? fetched_max_bytes
                                                        : asks  ? row_bytes
                                                                : kernel_room(asking),
                                                        head);
    if (fetches && blocks.size() * sizeof(Block) + payload_bytes <= 2 * row_bytes) {
      // As fast without.
      operation.message_not_gone();
      blocks.clear();
      payload_bytes = operation.next_blocks(blocks, row_bytes, head);
    }
    if (packed.size() < payload_bytes) packed.resize(payload_bytes);
    const std::span<std::byte> payload = std::span(packed).first(payload_bytes);
    if (!payload.empty()) operation.write_payload(payload);
    if (asks) {
      if (!ask_for_piece(control_, *asking, row, blocks, payload, may_fetch)) {
        operation.message_not_gone();
        continue;
      }
      ++counters.asked_operations;
    } else {
      if (asking != nullptr) note_piece(*asking, blocks.size());
      if (!carry_out_message(operation, blocks, payload, head.value)) {
        operation.message_not_gone();
        return false;
      }
    }
    operation.message_gone();
  }
  return true;
}

}  // namespace overlap::newrma
