// A window: operations out, messages in.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_window.hpp"

#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"
#include "opal/mca/common/overlap/message.hpp"

namespace overlap::newrma {

Windows windows;
Counters counters;

Window::Window(ompi_win_t& win, ompi_communicator_t& comm, std::unique_ptr<WindowMemory> memory,
               std::uint32_t incarnation, Reorder reorder)
    : win_(win),
      comm_(comm),
      memory_(std::move(memory)),
      incarnation_(incarnation),
      epochs_(*this, comm.c_my_rank, ompi_comm_size(&comm), reorder) {
  windows.add(*this);
  demand_.add(process->interrupts, envelope(node::any));
  ++own_windows;
}

Window::~Window() {
  if (polled_) windows.note_polled(false);
  --own_windows;
  demand_.drop(process->interrupts);
  windows.remove(*this);
}

MessageHead Window::message_head() const noexcept {
  MessageHead head;
  head.window = comm_index(&comm_);
  head.incarnation = incarnation_;
  head.source = self();
  return head;
}

Channel& Window::channel(Rank rank) {
  std::unique_ptr<Channel>& made = channels_[rank];
  if (made == nullptr) made = std::make_unique<Channel>(*this, rank);
  return *made;
}

bool Window::all_sent() const noexcept {
  return std::ranges::all_of(channels_, [](const auto& each) { return each.second->empty(); });
}

void Window::leave_to_mpi_thread() noexcept {
  channels_left_ = true;
  update_polling();
}

void Window::update_polling() {
  if (polled_ == needs_poll()) return;
  polled_ = !polled_;
  windows.note_polled(polled_);
}

void Window::poll() {
  epochs_.poll();
  if (!later_.empty()) {
    RmaOperation* const copied = later_.copy_piece();
    if (copied != nullptr) {
      count_direct(copied->call());
      give_up(*copied);
    }
  }
  if (process->interrupts.inside()) return;
  ended_in_thread_.clear();
  if (!std::exchange(channels_left_, false)) return;
  // Messages that come in meanwhile may make channels.
  std::vector<Channel*> left;
  for (const auto& [rank, each] : channels_) {
    if (!each->empty()) left.push_back(each.get());
  }
  for (Channel* const each : left) each->go_on();
}

// The host of the epochs.

void Window::send(Rank to, const NoticeMessage& notice) {
  if (notice.notice == Notice::flush) ++counters.flushes_sent;
  if (notice.notice == Notice::flush || notice.notice == Notice::unlock)
    channel(to).unseen_writes.note_question();
  // The key goes with the leave to use it, and nobody needs to ask.
  if (notice.notice == Notice::post || notice.notice == Notice::granted) channel(to).offer_key();
  channel(to).send_notice(notice);
}

WindowLock* Window::lock_of(Rank rank) {
  ControlBlock* control = memory_->control_of(rank);
  return control != nullptr ? &control->lock : nullptr;
}

void Window::took_ticket(Rank owner, WindowLock::Ticket ticket) {
  memory_->control_of(owner)->takers.note(ticket, self());
}

/// Wake who may enter now and is somebody else: it may sleep.
void Window::passed_turn(Rank owner) {
  ControlBlock& control = *memory_->control_of(owner);
  const WindowLock::Ticket turns[] = {control.lock.shared_turn(), control.lock.exclusive_turn()};
  for (const WindowLock::Ticket turn : turns) {
    const std::optional<Rank> taker = control.takers.taker_of(turn);
    if (taker && has_rank(*taker) && *taker != self()) wake(*taker);
    if (turns[0] == turns[1]) break;
  }
}

/// Through shared memory a look at its state does where it is awake.
void Window::wake(Rank rank) {
  Channel& to = channel(rank);
  Endpoint* const endpoint = to.endpoint();
  if (endpoint != nullptr && endpoint->copies_itself())
    endpoint->announce(envelope(self()));
  else
    to.send_notice({.notice = Notice::look});
}

void Window::happened(Event& event) {
  auto& waited = static_cast<WaitedEvent&>(event);
  WindowRequest* const request = waited.request;
  waited.has_happened.store(true, std::memory_order_release);  // E1
  if (request != nullptr) request->end();
}

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
    static_cast<void>(carry_out(call));  // the types have been checked
    give_up(operation);
    return;
  }
  if (is_passive(operation.access->epoch) && channel(call.target).unseen_writes.any()) {
    Epochs::set_written(operation);  // gets, too: the target is asked, once
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
      CopiedMemory::of(*channel(call.target).endpoint(), *memory_, call.target);
  if (memory && memory->carry_out(operation)) {
    count_direct(call);
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
  ++counters.sent_operations;
  counters.sent_bytes += call.bytes();
  UnseenWrites& unseen = channel(call.target).unseen_writes;
  if (call.writes() && (operation.access->epoch.kind == EpochKind::access || unseen.any()))
    unseen.note_write();
  if (call.answers()) {
    operation.id = next_id_++;
    answered_.emplace(operation.id, &operation);
  }
  ++unsent_operations_;
  channel(call.target).send_operation(operation);
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

/// On memory that this process maps.
int Window::carry_out(const OperationCall& call) noexcept {
  std::byte* const memory = mapped_target(call);
  count_direct(call);
  if (!call.accumulates()) return copy_directly(call, memory);
  return accumulate_directly(call, memory, *memory_->control_of(call.target));
}

void Window::count_direct(const OperationCall& call) noexcept {
  ++counters.direct_operations;
  counters.direct_bytes += call.bytes();
}

/// Does the kernel carry a call out? The target of an active epoch comes by itself, and short
/// messages cost less. What is attached to a dynamic window only its owner knows.
std::optional<CopiedMemory> Window::copied_memory(const OperationCall& call, const Access& access) {
  const bool pays =
      is_passive(access.epoch) || (!call.accumulates() && call.bytes() >= tunables.transfer_min);
  if (is_passive(access.epoch) && channel(call.target).unseen_writes.any()) return {};
  if (!pays || memory_->flavor() == Flavor::dynamic || !CopiedMemory::can_carry_out(call))
    return {};
  Endpoint* const endpoint = channel(call.target).endpoint();
  return endpoint != nullptr ? CopiedMemory::of(*endpoint, *memory_, call.target) : std::nullopt;
}

/// By a transfer, by copies, or (as it is) by messages?
void Window::choose_way(RmaOperation& operation, const Access& access) {
  const OperationCall& call = operation.call();
  if (is_direct(call.target)) return;
  Endpoint* const endpoint = channel(call.target).endpoint();
  if (endpoint == nullptr || memory_->flavor() == Flavor::dynamic) return;
  if (endpoint->copies_itself()) {
    Rail* const rail = transfer_rail(*endpoint);
    if (rail == nullptr || !copies_at_once(*rail, *memory_, call.target)) return;
  }
  if (can_transfer(*endpoint, call)) {
    operation.transfer = std::make_unique<OperationTransfer>(*this, operation);
    operation.writes = operation.writes && !ends_at_target(*endpoint);
  } else if (is_passive(access.epoch) && copied_memory(call, access)) {
    operation.by_copies = true;
    operation.writes = false;
  }
}

int Window::operate(const OperationCall& call, ompi_request_t** request) {
  // MPI has requests of operations in passive target epochs only.
  if (request != nullptr && !epochs_.in_passive_epoch()) return MPI_ERR_RMA_SYNC;
  Access* const access = epochs_.access_to(call.target);
  if (access == nullptr) return MPI_ERR_RMA_SYNC;
  if (is_direct(call.target) && Epochs::is_open(*access) && !comes_later(call)) {
    if (request != nullptr) *request = &ompi_request_empty;
    return carry_out(call);
  }
  if (Epochs::is_open(*access) && CopiedMemory::is_simple(call)) {
    std::optional<CopiedMemory> memory = copied_memory(call, *access);
    if (memory && memory->carry_out(call)) {
      if (request != nullptr) *request = &ompi_request_empty;
      count_direct(call);
      return OMPI_SUCCESS;
    }
  }
  const bool is_open = Epochs::is_open(*access);
  if (!is_open) ++counters.queued_operations;
  if (!is_open || comes_later(call)) process->interrupts.renew_demand();
  WindowRequest* const made = request != nullptr ? &WindowRequest::make(win_) : nullptr;
  if (request != nullptr) *request = &made->ompi;
  auto* const operation = new RmaOperation(call, made);
  choose_way(*operation, *access);
  epochs_.add(*operation, *access);
  update_polling();
  return OMPI_SUCCESS;
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
/// MPI threads.
void Window::give_up(RmaOperation& operation) {
  std::unique_ptr<RmaOperation> owner(&operation);
  if (operation.request() != nullptr) operation.request()->end();
  epochs_.operation_done(operation);
  if (!process->interrupts.inside()) return;
  ended_in_thread_.push_back(std::move(owner));
  update_polling();
}

// What all windows share.

namespace {

int poll_windows() noexcept {
  int ended = 0;
  must_run([&ended] { ended = windows.poll(); });
  return ended;
}

}  // namespace

void Windows::note_polled(bool one_more) noexcept {
  polled_ += one_more ? 1 : -std::size_t{1};
  process->driver.set_pollable({poll_windows, poll_windows}, polled_ != 0);
}

int Windows::poll() {
  int count = 0;
  for (const auto& [key, window] : all_) {
    if (!window->needs_poll()) continue;
    window->poll();
    window->update_polling();
    count += window->needs_poll() ? 0 : 1;
  }
  return count;
}

void progress_now_and_then() noexcept {
  // Turns of our own: opal_progress may give the processor away, for milliseconds on a busy node.
  constexpr unsigned calls_per_turn = 64;
  constexpr unsigned calls_per_long_turn = 4096;
  thread_local unsigned calls = 0;
  if (++calls % calls_per_turn != 0) return;
  if (calls % calls_per_long_turn == 0)
    opal_progress();
  else
    take_turn(process->driver, process->completions);
}

void wait_for(const WaitedEvent& event) {
  poll_until(process->driver, process->completions,
             [&event] { return event.has_happened.load(std::memory_order_acquire); });  // E2
}

}  // namespace overlap::newrma
