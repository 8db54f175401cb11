// The progress driver: what is taken over from opal_progress, and its turns.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/progress_driver.hpp"

#include <chrono>

#include "ompi/mca/common/overlap/foreign_windows.hpp"
#include "opal/mca/common/overlap/node/layout.hpp"

namespace overlap {

void ProgressDriver::adopt_btls() noexcept {
  for_each_btl([this](mca_btl_base_module_t& btl) {
    const mca_btl_base_component_progress_fn_t function = btl.btl_component->btl_progress;
    if (function == nullptr) return;  // driven by libevent (tcp), or without work of its own (self)
    // Only functions that the BML has registered: a BTL that nobody uses may not be ready for a
    // call.
    if (btl_count_ == btls_max || opal_progress_unregister(function) != OPAL_SUCCESS) return;
    const auto end = btls_.begin() + btl_count_;
    if (std::find(btls_.begin(), end, function) == end) btls_[btl_count_++] = function;
  });
}

void ProgressDriver::need_events() noexcept {
  if (!event_driven_) note_new_events();  // there may be no thread yet
  event_driven_ = more_ = true;
}

void ProgressDriver::own_events() noexcept { owns_events_ = more_ = true; }

void ProgressDriver::turn_events() noexcept {
  poll_events();
  const std::size_t count = count_events();
  if (std::exchange(event_count_, count) != count) note_new_events();
}

void ProgressDriver::give_back() noexcept {
  for (unsigned i = 0; i < btl_count_; ++i) opal_progress_register(btls_[i]);
  btl_count_ = 0;
  thread_btl_count_ = 0;
  if (event_driven_ || owns_events_) set_event_polling(true);
  event_driven_ = owns_events_ = false;
  on_stay_ = nullptr;
  shared_turns_ = nullptr;
  pollable_count_ = 0;
  set_more();
}

void ProgressDriver::set_pollable(const Pollable& pollable, bool needed) noexcept {
  const auto end = pollables_.begin() + pollable_count_;
  const auto found = std::find_if(pollables_.begin(), end, [&pollable](const Pollable& each) {
    return each.poll == pollable.poll;
  });
  if (needed && found == end && pollable_count_ < pollables_max) {
    pollables_[pollable_count_++] = pollable;
  } else if (!needed && found != end) {
    *found = pollables_[--pollable_count_];
  }
  set_more();
}

int ProgressDriver::poll_pollables(int (*Pollable::*poll)() noexcept) noexcept {
  int count = 0;
  for (unsigned i = pollable_count_; i-- > 0;) {
    // It may take itself out.
    if (i < pollable_count_ && pollables_[i].*poll != nullptr) count += (pollables_[i].*poll)();
  }
  return count;
}

ProgressDriver::ThreadTurn ProgressDriver::turn_in_thread(ThreadReach reach, KnowsProcess knows,
                                                          const void* context) noexcept {
  if (!reach.btls && !reach.events) return {};
  const unsigned before = noted_;
  if (reach.btls) static_cast<void>(poll_thread_btls());
  const std::size_t left = reach.events && event_driven_ ? poll_events_of(knows, context) : 0;
  const int found_room = poll_pollables(&Pollable::poll_in_thread);
  return {.moved = noted_ != before || found_room != 0, .left_connections = left != 0};
}

bool ProgressDriver::look_at_thread_btls() {
  const unsigned before = noted_;
  return poll_thread_btls() > 0 || noted_ != before;
}

int ProgressDriver::poll_thread_btls() {
  int count = 0;
  for (unsigned i = 0; i < thread_btl_count_; ++i) count += thread_btls_[i]();
  add_events(count);
  return count;
}

/// The part of a turn that a process on shared memory alone does not need.
int ProgressDriver::poll_more(bool events_now) {
  int count = 0;
  turns_.store(turns() + 1, std::memory_order_relaxed);
  // Visible before the next poll begins: a helper that sees two more of them knows that one has
  // begun since.
  if (shared_turns_ != nullptr) {
    shared_turns_->store(turns(), std::memory_order_relaxed);
    node::full_fence();
  }
  if (on_stay_ != nullptr && ++stay_turns_ == stay_turns_max) {
    stay_turns_ = 0;
    on_stay_(stay_context_);
  }
  if (event_driven_ || owns_events_) {
    set_event_polling(false);  // the runtime sets it anew at times
    const bool turn = is_event_turn(events_now);
    ++turns_without_event_;
    const unsigned before = noted_;
    if (turn) turn_events();
    count = static_cast<int>(noted_ - before);
  }
  return count + poll_pollables(&Pollable::poll);
}

bool ProgressDriver::is_event_turn(bool events_now) noexcept {
  // Those of other components may use BTLs that our messages do not.
  if (event_driven_ || ForeignWindows::any())
    return events_now || turns_without_event_ < busy_turns ||
           turns_without_event_ % quiet_turns_per_event_turn == 0 || btl_count_ == 0;
  if (!event_pace_.looks_at_clock(turns())) return false;
  const std::chrono::nanoseconds now = std::chrono::steady_clock::now().time_since_epoch();
  return event_pace_.is_due(static_cast<std::uint64_t>(now.count()), turns(),
                            events_now || turns_without_event_ >= busy_turns);
}

}  // namespace overlap
