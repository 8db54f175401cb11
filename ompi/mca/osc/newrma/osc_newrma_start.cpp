// Operations out: which way each one takes, and its end.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_window.hpp"

#include <chrono>

#include "ompi/mca/common/overlap/kernel_copy.hpp"
#include "ompi/mca/common/overlap/process.hpp"

#include "protocol/copy_cost.hpp"

namespace overlap::newrma {
namespace {

// A row is too large to be made for each operation that is asked for by itself.
OperationRow only_one;
// Of epochs whose targets come to take messages.
CopyCost copy_cost;

bool is_fence(const Access& access) noexcept { return access.epoch.kind == EpochKind::fence; }
bool is_active(const Access& access) noexcept { return !is_passive(access.epoch); }

/// Would a copy of the kernel cost less than a message where the kernel is fast? In passive epochs
/// nobody may come to take one. The target of an epoch between start and complete waits for it by
/// itself. A fence asks behind messages whether it has them: one of them alone does not pay.
bool copy_pays(const OperationCall& call, const Access& access) noexcept {
  if (is_passive(access.epoch)) return true;
  if (call.bytes() < tunables.transfer_min) return is_fence(access) && !access.copied;
  return is_fence(access) || !call.accumulates();
}

/// Read a byte where an operation is to go, for the time. @returns  false: it may not be read
bool time_copy(Rail& rail, std::uint64_t address) {
  using Clock = std::chrono::steady_clock;
  std::byte read{};
  const auto began = Clock::now();
  if (!copy_at_once(rail, rail.btl().btl_get, address, {&read, 1})) return false;
  const std::chrono::nanoseconds took = Clock::now() - began;
  copy_cost.took(static_cast<std::uint64_t>(took.count()));
  return true;
}

/// A put or accumulate whose bytes are at the origin as they go to the target, in one piece there.
bool is_simple_write(const OperationCall& call) noexcept {
  if (call.answers() || !call.writes()) return false;
  if (!call.origin_data.is_contiguous() || !call.target_data.is_contiguous()) return false;
  return call.bytes() != 0 && call.origin_data.bytes() >= call.bytes() &&
         (call.element == nullptr || !has_gaps(*call.element));
}

}  // namespace

void Window::start(Operation& base) {
  auto& operation = static_cast<RmaOperation&>(base);
  const OperationCall& call = operation.call();
  if (process->interrupts.inside()) ++counters.thread_started;
  if (comes_later(call)) {
    ++counters.later_operations;
    later_.push(operation, mapped_target(call));
    update_polling();
    return;
  }
  if (is_direct(call.target)) {
    must_run([&] { carry_out(call); });  // its epoch would wait for it forever
    give_up(operation);
    return;
  }
  if (is_passive(operation.access->epoch) && channel(call.target).unseen_writes.any()) {
    Epochs::set_written(operation);  // gets, too: the target is asked, once
    send_operation(operation);
    return;
  }
  if (operation.transfer != nullptr && goes_as_message(call, *operation.access)) {
    if (call.writes()) Epochs::set_written(operation);
    send_operation(operation);
    return;
  }
  if (operation.transfer != nullptr) {
    ++counters.transferred_operations;
    counters.transferred_bytes += call.bytes();
    operation.transfer->go();
    return;
  }
  if (operation.by_copies)
    start_by_copies(operation);
  else
    send_operation(operation);
}

void Window::start_by_copies(RmaOperation& operation) {
  const OperationCall& call = operation.call();
  operation.prepare_messages();
  std::optional<CopiedMemory> memory =
      !call.accumulates() || Epochs::is_first(operation)
          ? CopiedMemory::of(*channel(call.target).endpoint(), *memory_, call)
          : std::nullopt;
  AskingPace* const asking = asks_for_blocks(operation) ? &channel(call.target).asking : nullptr;
  if (memory && memory->carry_out(operation, asking)) {
    count_direct(call.bytes());
    end_operation(operation);
    return;
  }
  if (call.writes()) Epochs::set_written(operation);
  send_rest(operation);
}

void Window::send_operation(RmaOperation& operation) {
  operation.prepare_messages();
  send_rest(operation);
}

void Window::send_rest(RmaOperation& operation) {
  const OperationCall& call = operation.call();
  note_sent_operation(call, *operation.access);
  if (call.answers()) {
    operation.id = next_id_++;
    answered_.emplace(operation.id, &operation);
  }
  ++unsent_operations_;
  channel(call.target).send_operation(operation);
}

void Window::note_sent_operation(const OperationCall& call, const Access& access) {
  ++counters.sent_operations;
  counters.sent_bytes += call.bytes();
  UnseenWrites& unseen = channel(call.target).unseen_writes;
  if (call.writes() && (access.epoch.kind == EpochKind::access || unseen.any()))
    unseen.note_write();
}

void Window::transfer_ended(RmaOperation& operation, bool was_taken, bool ok) {
  if (was_taken) --transfers_in_flight_;
  if (ok) {
    end_operation(operation);
    return;
  }
  if (operation.call().writes()) Epochs::set_written(operation);
  send_operation(operation);
}

// Operations.

std::byte* Window::mapped_target(const OperationCall& call) const noexcept {
  return memory_->flavor() == Flavor::dynamic ? reinterpret_cast<std::byte*>(call.start)
                                              : memory_->data_of(call.target) + call.start;
}

/// Operations that follow may go to other nodes: their data moves while this one is copied.
bool Window::comes_later(const OperationCall& call) const noexcept {
  return memory_->spans_nodes() && call.target != self() && is_direct(call.target) &&
         !call.accumulates() && call.bytes() >= tunables.later_min;
}

/// @returns  nullptr: there is none, or no memory to say so
const Access* Window::find_access(Rank target) noexcept {
  const Access* found = nullptr;
  const auto find = [&]() -> int {
    found = epochs_.access_to(target);
    return OMPI_SUCCESS;
  };
  return guarded(find) == OMPI_SUCCESS ? found : nullptr;
}

/// @returns  false: it is none of those, or this process does not map it
bool Window::find_mapped(Rank rank) noexcept {
  if (!has_rank(rank) || !memory_->allocates() || memory_->data_of(rank) == nullptr) return false;
  mapped_ = {.rank = rank,
             .displacement_unit = memory_->displacement_unit_of(rank),
             .data = memory_->data_of(rank),
             .bytes = memory_->bytes_of(rank),
             .control = memory_->control_of(rank),
             .copies_later = memory_->spans_nodes()};
  return true;
}

/// Would an operation to that rank start at once, under a lock?
bool Window::is_open_under_lock(Rank target) const noexcept {
  if (epochs_.has_entered(target)) return true;
  const Access* const access = epochs_.last_access_to(target);
  return access != nullptr && Epochs::is_open(*access) && is_passive(access->epoch);
}

bool Window::copy_by_kernel(Kind kind, Rank target, std::ptrdiff_t displacement,
                            std::span<std::byte> own) noexcept {
  Channel* const to = last_channel_to(target);
  if (to == nullptr || !is_open_under_lock(target)) return false;
  if (memory_->flavor() != Flavor::create || gathered_ != 0) return false;
  std::ptrdiff_t start = 0;
  if (__builtin_mul_overflow(displacement, memory_->displacement_unit_of(target), &start))
    return false;
  const auto begin = static_cast<std::uint64_t>(start);  // below the window: huge
  const std::uint64_t bytes = memory_->bytes_of(target);
  if (begin > bytes || own.size() > bytes - begin) return false;
  Rail* const rail = to->copying_rail();
  if (rail == nullptr || to->unseen_writes.any() || memory_->refuses_copies(target)) return false;
  // Its owner may be asked, or several are gathered.
  if (own.size() <= asked_max_bytes && (!to->asking.is_answered() || stands_in_row(*to)))
    return false;
  const std::uint64_t address = memory_->address_of(target) + begin;
  // Not known yet: the general way finds out, which takes memory.
  if (rail->copies != Rail::Copies::at_once) return false;
  CopyFunction* const by = kind == Kind::put ? rail->btl().btl_put : rail->btl().btl_get;
  if (!copies_at_once(*rail, address) || !copy_at_once(*rail, by, address, own)) return false;
  count_direct(own.size());
  return true;
}

/// On memory that this process maps.
void Window::carry_out(const OperationCall& call) {
  std::byte* const memory = mapped_target(call);
  count_direct(call.bytes());
  if (call.accumulates())
    accumulate_directly(call, memory, *memory_->control_of(call.target));
  else
    copy_directly(call, memory);
}

/// Is the memory from the first to the last byte of the target's data part of the window? The
/// bounds of other windows have been looked at; what is attached to a dynamic one only its owner
/// knows, and its node.
Attached Window::is_attached(const OperationCall& call) const noexcept {
  if (memory_->flavor() != Flavor::dynamic) return Attached::yes;
  const Range range = range_of(call.target_data);
  return memory_->knows_attached(call.target, target_address(*memory_, call),
                                 static_cast<std::uint64_t>(range.end - range.begin));
}

/// Do messages to a target of the node take less than copies by the kernel, or does that refuse?
bool Window::copies_are_dear(const OperationCall& call) {
  if (call.bytes() > CopyCost::max_bytes) return false;
  Endpoint* const endpoint = channel(call.target).endpoint();
  if (endpoint == nullptr || !kernel_copies(*endpoint)) return false;
  switch (tunables.active_copies) {
    case active_copies_choice::kernel: return false;
    case active_copies_choice::messages: return true;
    case active_copies_choice::measured: break;
  }
  // Where processes share cores, time says nothing, and each message may cost a change of them.
  if (opal_progress_yield_when_idle || !are_copied_at_once(*endpoint, *memory_, call)) return false;
  while (copy_cost.wants_sample()) {
    if (time_copy(*transfer_rail(*endpoint), target_address(*memory_, call))) continue;
    memory_->refuse_copies(call.target);
    return true;
  }
  return copy_cost.is_dear(call.bytes(), call.accumulates() ? 2 : 1);
}

/// Does an operation go as a message because the kernel is slow? Not behind those that find no
/// room: their target may compute for long. A get between start and complete ends without its
/// target as long as the kernel makes it.
bool Window::goes_as_message(const OperationCall& call, const Access& access) {
  if (!is_active(access) || !Epochs::is_open(access) || (!is_fence(access) && call.answers()))
    return false;
  return channel(call.target).empty() && copies_are_dear(call);
}

/// Does the kernel carry a call out?
std::optional<CopiedMemory> Window::copied_memory(const OperationCall& call, const Access& access) {
  if (channel(call.target).unseen_writes.any()) return {};
  if (!copy_pays(call, access) || !CopiedMemory::can_carry_out(call) ||
      is_attached(call) != Attached::yes)
    return {};
  if (goes_as_message(call, access)) return {};
  Endpoint* const endpoint = channel(call.target).endpoint();
  return endpoint != nullptr ? CopiedMemory::of(*endpoint, *memory_, call) : std::nullopt;
}

/// Is a target of the node asked to carry a call out at once? Nothing that went before it may be
/// overtaken. In active epochs messages are as good for what brings nothing back, but for one of
/// them alone, behind which a fence asks.
bool Window::asks_owner(const OperationCall& call, const Access& access) {
  if (call.bytes() > asked_max_bytes || delivers_ || !can_ask(call.target)) return false;
  const bool pays = is_passive(access.epoch) || (call.accumulates() && call.answers()) ||
                    (is_fence(access) && !access.copied);
  return pays && Epochs::is_clear(access);
}

/// Does that rank look for what it is asked, and would it be behind nothing?
bool Window::can_ask(Rank target) {
  if (memory_->flavor() != Flavor::create || memory_->control_of(target) == nullptr) return false;
  Channel& to = channel(target);
  return !to.unseen_writes.any() && to.endpoint() != nullptr && to.endpoint()->copies_itself();
}

bool Window::ask_for(const OperationCall& call, const Access& access) {
  if (!asks_owner(call, access)) return false;
  Channel& to = channel(call.target);
  if (!to.asking.may_ask()) return false;
  only_one.clear();
  add_to_row(only_one, row_head_of(call), call);
  if (!ask_owner(*memory_->control_of(call.target), to.asking, only_one,
                 is_active(access) && !call.answers() ? Others::pass : Others::wait))
    return false;
  ++counters.asked_operations;
  return true;
}

/// Is the owner of the memory asked for a put or accumulate with gaps, piece by piece?
/// @param operation  whose messages are prepared
bool Window::asks_for_blocks(const RmaOperation& operation) {
  const OperationCall& call = operation.call();
  // Of longer blocks the kernel copies as many bytes in that time.
  constexpr std::uint64_t block_max_bytes = 64;
  return !call.answers() && call.writes() &&
         call.bytes() <= operation.block_count() * block_max_bytes && can_ask(call.target);
}

/// By the target's processor if it is at hand, or by the kernel. @returns  false: nothing is done
bool Window::carry_out_there(const OperationCall& call, Access& access) {
  if (!CopiedMemory::is_simple(call)) return false;
  // A longer put or get alone costs what the kernel's copy does. Of an owner that has been there it
  // is known that a row of them pays.
  const bool asks_last = !call.accumulates() && call.bytes() > asked_alone_max_bytes &&
                         channel(call.target).asking.is_answered();
  if (!asks_last && ask_for(call, access)) {
    access.copied = true;
    return true;
  }
  // Accumulates that have gone as messages must not be overtaken.
  if (call.accumulates() && !Epochs::is_clear(access)) return false;
  std::optional<CopiedMemory> memory = copied_memory(call, access);
  if ((!memory || !memory->carry_out(call)) && !(asks_last && ask_for(call, access))) return false;
  access.copied = true;
  return true;
}

Window::Way Window::way_of(const OperationCall& call, const Access& access) {
  if (is_direct(call.target)) return Way::direct;
  // The bytes of a gathered one go at once: they lie in a row that is used again.
  if (delivers_ && !call.answers()) return Way::messages;
  Endpoint* const endpoint = channel(call.target).endpoint();
  if (endpoint == nullptr || is_attached(call) != Attached::yes) return Way::messages;
  if (kernel_copies(*endpoint)) {
    if (!are_copied_at_once(*endpoint, *memory_, call)) return Way::messages;
  } else if (memory_->flavor() == Flavor::dynamic) {
    return Way::messages;  // adapters would need a key for each range
  }
  if (can_transfer(*endpoint, call))
    return goes_as_message(call, access) ? Way::messages : Way::transfer;
  return is_passive(access.epoch) && copied_memory(call, access) ? Way::copies : Way::messages;
}

RmaOperation* Window::make_operation(const OperationCall& call, Way way, ompi_request_t** request) {
  WindowRequest* const made = request != nullptr ? &WindowRequest::make(win_) : nullptr;
  if (request != nullptr) *request = &made->ompi;
  auto* const operation = new RmaOperation(call, made);
  if (way == Way::transfer) {
    operation->transfer = std::make_unique<OperationTransfer>(*this, *operation);
    operation->writes = operation->writes && !ends_at_target(*channel(call.target).endpoint());
  } else if (way == Way::copies) {
    operation->by_copies = true;
    operation->writes = false;
  }
  return operation;
}

int Window::operate(const OperationCall& call, ompi_request_t** request) {
  // MPI has requests of operations in passive target epochs only.
  if (request != nullptr && !epochs_.in_passive_epoch()) return MPI_ERR_RMA_SYNC;
  Access* const access = epochs_.access_to(call.target);
  if (access == nullptr) return MPI_ERR_RMA_SYNC;
  if (call.bytes() == 0) {
    update_polling();  // it may wait for a lock now
    if (request != nullptr) *request = &ompi_request_empty;
    return OMPI_SUCCESS;
  }
  if (is_direct(call.target) && Epochs::is_open(*access) && !comes_later(call)) {
    if (request != nullptr) *request = &ompi_request_empty;
    carry_out(call);
    return OMPI_SUCCESS;
  }
  // Between blocks there may be what is not attached. Before the target opens its epoch, it may
  // still attach.
  if (Epochs::is_open(*access) && call.target_data.is_contiguous() &&
      is_attached(call) == Attached::no)
    return MPI_ERR_RMA_RANGE;
  // One that answers and has a request must have its answer when that is done.
  if (Epochs::is_open(*access) && (request == nullptr || !call.answers()) &&
      try_gather(call, *access)) {
    if (request != nullptr) *request = &ompi_request_empty;
    return OMPI_SUCCESS;
  }
  if (gathered_ != 0) deliver(channel(call.target));
  carry_out_far(call, *access, request);
  return OMPI_SUCCESS;
}

/// Memory that this process does not map, or whose epoch has not begun; without waiting for more.
void Window::carry_out_far(const OperationCall& call, Access& access, ompi_request_t** request) {
  if (Epochs::is_open(access) && carry_out_there(call, access)) {
    if (request != nullptr) *request = &ompi_request_empty;
    count_direct(call.bytes());
    return;
  }
  const bool is_open = Epochs::is_open(access);
  const Way way = way_of(call, access);
  if (is_open && way == Way::messages && is_simple_write(call) &&
      channel(call.target).takes_write(call.bytes())) {
    if (request != nullptr) *request = &ompi_request_empty;
    send_write(call, access);
    update_polling();
    return;
  }
  if (!is_open) ++counters.queued_operations;
  if (!is_open || comes_later(call)) process->interrupts.renew_demand();
  epochs_.add(*make_operation(call, way, request), access);
  update_polling();
}

/// A small put or accumulate that its target is ready for: its bytes go, and it is done here.
void Window::send_write(const OperationCall& call, Access& access) {
  MessageHead head = message_head();
  head.kind = call.kind;
  head.is_row = true;
  head.block_count = 1;
  if (call.op != nullptr) head.op = static_cast<std::uint16_t>(call.op->o_f_to_c_index);
  if (call.element != nullptr)
    head.element = static_cast<std::uint16_t>(call.element->d_f_to_c_index);
  const std::uint64_t start =
      call.start + static_cast<std::uint64_t>(call.target_data.type->super.true_lb);
  note_sent_operation(call, access);
  epochs_.add_sent_write(access);
  channel(call.target).send_write(head, {start, call.bytes()}, call.own_first_byte());
}

void Window::operation_sent(RmaOperation& operation) {
  --unsent_operations_;
  if (operation.is_done()) end_operation(operation);
}

void Window::end_operation(RmaOperation& operation) {
  operation.finish();
  const auto found = answered_.find(operation.id);
  if (found != answered_.end() && found->second == &operation) answered_.erase(found);
  give_up(operation);
}

/// It is done. The interrupt thread deletes nothing: the counts of references to datatypes are for
/// MPI threads. The user's memory is not registered any more when a call that waits returns: it may
/// be unmapped then.
void Window::give_up(RmaOperation& operation) {
  std::unique_ptr<RmaOperation> owner(&operation);
  if (operation.transfer != nullptr) operation.transfer->release();
  if (operation.request() != nullptr) operation.request()->end();
  epochs_.operation_done(operation);
  if (process->interrupts.inside()) ended_in_thread_.push_back(std::move(owner));
  update_polling();  // its epoch may have ended, and the next one waits for a lock, or has got it
}

}  // namespace overlap::newrma
