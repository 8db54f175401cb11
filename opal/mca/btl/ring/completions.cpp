// Completion queues: which queue pair reports through which, and what has completed.
// SPDX-License-Identifier: BSD-3-Clause
#include "completions.hpp"

namespace overlap::ring {

CompletionGroup& Completions::take_room() {
  for (const auto& group : groups_) {
    if (group->room.try_take(send_queue_entries_)) return *group;
  }
  const std::uint32_t entries =
      completion_entries(static_cast<std::uint32_t>(groups_.size()), send_queue_entries_,
                         receive_buffers_max_, device_.capabilities().completion_queue_max);
  groups_.push_back(std::make_unique<CompletionGroup>(CompletionGroup{
      device_.make_completion_queue(entries), CompletionRoom(entries, receive_buffers_max_)}));
  static_cast<void>(groups_.back()->room.try_take(send_queue_entries_));
  return *groups_.back();
}

/// Adapters pin their queues.
QueuePairPointer Completions::make_queue_pair(fabric::ReceiveQueue& receives,
                                              unsigned remote_rights) {
  for (;;) {
    try {
      return try_once(receives, remote_rights);
    } catch (const fabric::Error& error) {
      if (error.kind != fabric::Error::Kind::memory_limit || !kept_.try_reclaim()) throw;
    }
  }
}

QueuePairPointer Completions::try_once(fabric::ReceiveQueue& receives, unsigned remote_rights) {
  CompletionGroup& group = take_room();
  std::unique_ptr<fabric::QueuePair> made;
  try {
    made = device_.make_queue_pair({.completions = group.queue.get(),
                                    .receives = &receives,
                                    .send_queue_entries = send_queue_entries_,
                                    .remote_rights = remote_rights});
  } catch (...) {
    group.room.give_back(send_queue_entries_);
    throw;
  }
  return {made.release(), {&group, send_queue_entries_}};
}

void Completions::fill() noexcept {
  batch_next_ = batch_count_ = 0;
  for (std::size_t tries = groups_.size(); tries > 0 && batch_count_ == 0; --tries) {
    CompletionGroup& group = *groups_[next_group_];
    if (++next_group_ >= groups_.size()) next_group_ = 0;
    batch_count_ = group.queue->poll(batch_);
  }
}

}  // namespace overlap::ring
