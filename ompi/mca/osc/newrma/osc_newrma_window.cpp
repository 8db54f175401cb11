// A window: what epochs ask of it, and its turns.
// SPDX-License-Identifier: BSD-3-Clause
#include "osc_newrma_window.hpp"

#include "ompi/mca/common/overlap/process.hpp"
#include "ompi/mca/common/overlap/waiting.hpp"
#include "opal/mca/common/overlap/message.hpp"
#include "opal/mca/common/overlap/never_destroyed.hpp"

namespace overlap::newrma {
Windows& windows = never_destroyed<Windows>();
Counters counters;

Window::Window(ompi_win_t& win, ompi_communicator_t& comm, std::unique_ptr<WindowMemory> memory,
               std::uint32_t incarnation, Reorder reorder)
    : win_(win),
      comm_(comm),
      memory_(std::move(memory)),
      incarnation_(incarnation),
      epochs_(*this, windows.locks, comm.c_my_rank, ompi_comm_size(&comm), reorder) {
  epochs_.expect_locks(memory_->mapped_ranks().size());
  windows.add(*this);
  is_served_ = memory_->is_asked() && windows.try_serve(*this);
  demand_.add(process->interrupts, envelope(node::any));
}

Window::~Window() {
  if (polled_) windows.set_polled(*this, false);
  windows.serve_no_longer(*this);
  windows.gathered.for_each([this](GatheredRow& each) {
    if (each.window == this) windows.gathered.give(each);
  });
  left_work_.set(process->interrupts, false);
  demand_.drop(process->interrupts);
  windows.remove(*this);
}

MessageHead Window::message_head() const noexcept {
  MessageHead head;
  head.window = context_of(&comm_);
  head.incarnation = incarnation_;
  head.source = self();
  return head;
}

Channel& Window::find_channel(Rank rank) {
  std::unique_ptr<Channel>& made = channels_[rank];
  if (made == nullptr) made = std::make_unique<Channel>(*this, rank);
  last_channel_ = made.get();
  return *made;
}

bool Window::channels_keep_nothing() const noexcept {
  return std::ranges::all_of(channels_,
                             [](const auto& each) { return each.second->keeps_nothing(); });
}

bool Window::has_channel_gone(Rank target) const noexcept {
  const auto found = channels_.find(target);
  return found == channels_.end() || found->second->has_gone();
}

bool Window::has_gone(const WaitedEvent& event) const noexcept {
  if (channels_.empty()) return true;
  switch (event.leaves) {
    case Leaves::none: return true;
    case Leaves::to_target: return has_channel_gone(event.target);
    case Leaves::to_group:
      return std::ranges::all_of(event.group, [this](Rank to) { return has_channel_gone(to); });
    case Leaves::all: break;
  }
  return std::ranges::all_of(channels_, [](const auto& each) { return each.second->has_gone(); });
}

void Window::leave_to_mpi_thread() {
  channels_left_ = true;
  update_polling();
}

void Window::hold(Channel& channel) {
  held_.push_back(&channel);
  update_polling();
}

void Window::let_go() {
  while (!held_.empty()) {
    Channel* const last = held_.back();
    held_.pop_back();
    last->let_go();
  }
  update_polling();
}

void Window::update_polling() {
  left_work_.set(process->interrupts, has_left_work());
  if (polled_ == needs_poll()) return;
  polled_ = !polled_;
  windows.set_polled(*this, polled_);
}

void Window::poll() {
  epochs_.poll();
  if (!later_.empty()) {
    RmaOperation* const copied = later_.copy_piece();
    if (copied != nullptr) {
      count_direct(copied->call().bytes());
      give_up(*copied);
    }
  }
  // What is sent may let others wait, or go.
  for (std::size_t i = held_.size(); i-- > 0;) {
    Channel* const each = i < held_.size() ? held_[i] : nullptr;
    if (each == nullptr || !each->has_row_ended()) continue;
    held_.erase(held_.begin() + static_cast<std::ptrdiff_t>(i));
    each->let_go();
  }
  std::erase_if(leaving_, [this](WaitedEvent* event) {
    if (!has_gone(*event)) return false;
    end(*event);
    return true;
  });
  if (process->interrupts.inside()) {
    epochs_.ask_ahead();
    return;
  }
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
  if (asks_for_answer(notice)) channel(to).unseen_writes.note_question();
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
    if (control.lock.is_taken(turn)) {
      const std::optional<Rank> taker = control.takers.taker_of(turn);
      if (taker && has_rank(*taker) && *taker != self()) wake(*taker);
    }
    if (turns[0] == turns[1]) break;
  }
}

/// Guests stand nowhere: whoever of the node sleeps looks.
void Window::let_guests_in(Rank) {
  for (Rank each = 0; each < count(); ++each)
    if (each != self() && memory_->control_of(each) != nullptr) wake(each);
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

void Window::happened(Event& event) { end_when_gone(static_cast<WaitedEvent&>(event)); }

void Window::end_when_gone(WaitedEvent& event) {
  if (has_gone(event)) return end(event);
  leaving_.push_back(&event);
  update_polling();
}

void Window::end(WaitedEvent& event) {
  WindowRequest* const request = event.request;
  await_stores();
  event.has_happened.store(true, std::memory_order_release);  // E1
  if (request != nullptr) request->end();
}

// What all windows share.

namespace {

int poll_windows() noexcept {
  int ended = 0;
  must_run([&ended] { ended = windows.poll(); });
  return ended;
}

}  // namespace

void Windows::set_polled(Window& window, bool needed) {
  if (needed)
    polled_.push_back(&window);
  else
    std::erase(polled_, &window);
  update_pollable();
}

bool Windows::try_serve(Window& window) {
  if (served_.size() == served_max) return false;
  served_.push_back(&window);
  update_pollable();
  return true;
}

void Windows::serve_no_longer(Window& window) {
  std::erase(served_, &window);
  update_pollable();
}

void Windows::update_pollable() noexcept {
  process->driver.set_pollable({poll_windows, poll_windows}, !polled_.empty() || !served_.empty());
}

int Windows::poll() {
  int count = 0;
  serve();
  if (gathered.any()) gathered.for_each([](GatheredRow& each) { each.window->deliver_gathered(); });
  for (std::size_t i = polled_.size(); i-- > 0;) {
    if (i >= polled_.size()) continue;  // messages that came in have ended the others' need
    Window& window = *polled_[i];
    window.poll();
    window.update_polling();
    count += window.needs_poll() ? 0 : 1;
  }
  return count;
}

void take_turn_of_calls(unsigned calls) noexcept {
  // Turns of our own: opal_progress may give the processor away, for milliseconds on a busy node.
  constexpr unsigned calls_per_long_turn = 4096;
  if (calls % calls_per_long_turn == 0)
    opal_progress();
  else
    take_turn(process->driver, process->completions);
}

void wait_for(const WaitedEvent& event) {
  poll_until(process->driver, process->completions,
             [&event] { return event.has_happened.load(std::memory_order_acquire); });  // E2
  process->interrupts.ring_for_work();
}

void wait_for_others_locks(const Window& window) {
  poll_until(process->driver, process->completions, [&window] {
    const Entry entry;
    return !window.is_behind_others();
  });
}

}  // namespace overlap::newrma
