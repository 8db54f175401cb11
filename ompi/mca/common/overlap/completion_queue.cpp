// The completion queue: a growing ring of requests.
// SPDX-License-Identifier: BSD-3-Clause
#include "ompi/mca/common/overlap/completion_queue.hpp"

#include "opal/mca/common/overlap/progress_lock.hpp"

namespace overlap {
namespace {

thread_local unsigned drains;  // callbacks may wait, which drains as well

}  // namespace

bool CompletionQueue::draining() noexcept { return drains > 0; }

void CompletionQueue::append(ompi_request_t& request, Complete complete) {
  if (count_ == ring_.size()) {
    std::vector<Entry> larger(ring_.empty() ? 64 : ring_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = ring_[(first_ + i) % ring_.size()];
    ring_ = std::move(larger);
    first_ = 0;
  }
  ring_[(first_ + count_) & (ring_.size() - 1)] = {&request, complete};
  ++count_;
}

CompletionQueue::Entry CompletionQueue::pop() noexcept {
  const Guard guard(progress_lock);
  if (count_ == 0) return {};
  const Entry ended = ring_[first_];
  first_ = (first_ + 1) & (ring_.size() - 1);
  --count_;
  return ended;
}

std::size_t CompletionQueue::drain() noexcept {
  std::size_t completed = 0;
  ++drains;
  for (Entry ended = pop(); ended.request != nullptr; ended = pop()) {
    ended.complete(*ended.request);
    ++completed;
  }
  --drains;
  return completed;
}

}  // namespace overlap
