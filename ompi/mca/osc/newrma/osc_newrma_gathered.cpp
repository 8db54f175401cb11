// Small operations that wait for more of their kind, and how they get to their target in the end.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_gathered.hpp"

#include "ompi/mca/common/overlap/process.hpp"

#include "osc_newrma_window.hpp"

namespace overlap::newrma {
namespace {

/// As the program has called it, on bytes or on elements of a predefined type.
/// @param data  of it in the row
OperationCall call_of(const GatheredRow& gathered, std::size_t index, const Block& block,
                      std::byte* data) noexcept {
  const RowHead& head = gathered.row.head();
  const OperationRow::Places& places = gathered.row.places(index);
  OperationCall call;
  call.kind = head.kind;
  call.target = gathered.target;
  call.start = block.address;
  // The row does not last: what answers may go as a message, whose bytes are read later.
  call.origin = head.answers() ? places.origin : data;
  call.compare = places.compare;
  call.result = places.result;
  if (head.kind != Kind::put && head.kind != Kind::get) call.element = type_of_number(head.element);
  if (head.kind == Kind::accumulate || head.kind == Kind::get_accumulate)
    call.op = op_of_number(head.op);
  ompi_datatype_t* const type = call.element != nullptr ? call.element : &ompi_mpi_byte.dt;
  call.target_data = {type, static_cast<std::size_t>(block.bytes / type->super.size)};
  call.origin_data = call.result_data = call.target_data;
  return call;
}

}  // namespace

/// Does an operation wait for more of its kind? The owner has been there for the last ones, so that
/// it is worth the wait. Turns of this window's process deliver, if no call does.
bool Window::can_gather(const OperationCall& call, const Access& access) {
  if (!is_served_ || !CopiedMemory::is_simple(call) || !asks_owner(call, access)) return false;
  const Channel& to = channel(call.target);
  return is_passive(access.epoch) && to.asking.is_answered() && to.takes_write(call.bytes());
}

/// Is one more operation behind enough others since a call that synchronizes?
bool Window::stands_in_row(Channel& to) noexcept {
  if (std::exchange(to.gathers_since, synchronized_) != synchronized_) to.gathering.restart();
  return to.gathering.holds(process->driver.turns());
}

/// @returns  false: it must go by itself, behind those that have been gathered
bool Window::try_gather(const OperationCall& call, const Access& access) {
  if (!can_gather(call, access)) return false;
  const RowHead head = row_head_of(call);
  Channel& to = channel(call.target);
  if (!stands_in_row(to)) return false;
  if (to.gathered != nullptr && !to.gathered->row.takes(head, call.bytes())) {
    deliver(to);
    if (!can_gather(call, access)) return false;  // they have gone another way
  }
  if (to.gathered == nullptr) {
    GatheredRow& row = windows.gathered.next();
    if (row.window != nullptr) row.window->deliver(row.window->channel(row.target));
    windows.gathered.take(row, *this, call.target);
    to.gathered = &row;
    if (gathered_++ == 0) update_polling();
  }
  add_to_row(to.gathered->row, head, call);
  return true;
}

void Window::deliver(Channel& to) {
  GatheredRow* const gathered = std::exchange(to.gathered, nullptr);
  if (gathered == nullptr) return;
  --gathered_;
  OperationRow& row = gathered->row;
  if (ask_owner(*memory_->control_of(gathered->target), to.asking, row)) {
    counters.asked_operations += row.count();
    for (const Block& each : row.blocks()) count_direct(each.bytes);
  } else {
    must_run([&] { carry_out_each(*gathered); });
  }
  windows.gathered.give(*gathered);
  if (gathered_ == 0) update_polling();
}

/// The owner has not come.
void Window::carry_out_each(GatheredRow& gathered) {
  // Calls that end epochs deliver first: it is the one in which they have been issued.
  Access& access = *epochs_.access_to(gathered.target);
  delivers_ = true;
  gathered.row.for_each([&](std::size_t index, const Block& block, std::byte* data) {
    carry_out_far(call_of(gathered, index, block, data), access, nullptr);
  });
  delivers_ = false;
}

void Window::deliver_gathered() {
  if (gathered_ == 0) return;
  windows.gathered.for_each([this](GatheredRow& each) {
    if (each.window == this) deliver(channel(each.target));
  });
}

}  // namespace overlap::newrma
