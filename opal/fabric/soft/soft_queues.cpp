// The queues of the software device as a client uses them: shared memory, no system calls but a
// doorbell when the device sleeps.
// SPDX-License-Identifier: BSD-3-Clause
#include <time.h>

#include <cstring>

#include "soft_device.hpp"
#include "soft_management.hpp"
#include "soft_ring.hpp"

namespace overlap::fabric::soft {

std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// --- Completions -----------------------------------------------------------------------

SoftCompletionQueue::SoftCompletionQueue(SoftDevice& device, std::uint32_t entries, bool counting)
    : device_(device), entries_(entries), counting_(counting) {
  const Descriptor file = make_ring<CompletionRing>(entries, ring_, "completion queue");
  Message ask;
  ask.ask = Ask::make_completions;
  ask.numbers[0] = entries;
  ask.numbers[1] = counting ? 1 : 0;
  number_ = device.link().make(ask, file.get(), "completion queue");
}

SoftCompletionQueue::~SoftCompletionQueue() { device_.link().drop(Ask::drop_completions, number_); }

std::size_t SoftCompletionQueue::poll(std::span<Completion> out) noexcept {
  if (counting_) return 0;
  CompletionRing& ring = *ring_.as<CompletionRing>();
  const std::uint32_t tail = ring.tail.load(std::memory_order_acquire);  // C2, pairs with C1
  std::size_t count = 0;
  while (count < out.size() && head_ != tail) out[count++] = take(ring.slots[head_++ % entries_]);
  if (count > 0) {
    ring.head.store(head_, std::memory_order_release);  // C3, pairs with C4
    return count;
  }
  while (count < out.size() && !local_.empty()) {
    out[count++] = local_.front();
    local_.pop_front();
  }
  if (count > 0) return count;
  ++empty_polls_;
  if (empty_polls_ % polls_per_wait == 0 || device_.doorbell().has_note())
    device_.doorbell().wait_for_device();
  if (empty_polls_ % polls_per_look == 0) device_.link().look_for_end();
  return 0;
}

Status SoftCompletionQueue::stage_wait(std::uint32_t count, bool last) noexcept {
  if (!counting_ || count == 0 || count > WaitIndex::mask / 2) return Status::bad_argument;
  // Further ahead it would count as behind. An old value of the tail errs on the safe side.
  const std::uint32_t counted = ring_.as<CompletionRing>()->tail.load(std::memory_order_relaxed);
  const auto ahead = static_cast<std::int32_t>(staging_.staged_index.base() + count - counted);
  if (ahead > static_cast<std::int32_t>(WaitIndex::mask / 2)) return Status::retry_queue_full;
  static_cast<void>(staging_.staged_index.add(count, last));
  return Status::done;
}

void SoftCompletionQueue::add_local(const Completion& completion) {
  if (counting_) return;
  local_.push_back(completion);
  device_.doorbell().end_arrivals();  // a failed request wakes
}

void SoftCompletionQueue::settle() {
  const std::uint32_t tail =
      ring_.as<CompletionRing>()->tail.load(std::memory_order_acquire);  // C2
  while (head_ != tail)
    local_.push_back(take(ring_.as<CompletionRing>()->slots[head_++ % entries_]));
}

Completion SoftCompletionQueue::take(const CompletionSlot& slot) noexcept {
  Completion completion;
  completion.id = slot.id;
  completion.status = static_cast<CompletionStatus>(slot.status);
  completion.opcode = static_cast<Opcode>(slot.opcode);
  completion.has_immediate = slot.has_immediate != 0;
  completion.bytes = slot.bytes;
  completion.immediate = slot.immediate;
  completion.queue_pair_number = slot.pair_number;
  if (owner_ != nullptr) {
    owner_->retire(slot.position, completion.status);
  } else if (completion.opcode != Opcode::receive) {
    if (SoftQueuePair* pair = device_.find(slot.pair_cookie, slot.pair_number); pair != nullptr) {
      pair->retire(slot.position, completion.status);
    }
  }
  return completion;
}

// --- Receives --------------------------------------------------------------------------

SoftReceiveQueue::SoftReceiveQueue(SoftDevice& device, std::uint32_t entries)
    : device_(device), entries_(entries) {
  const Descriptor file = make_ring<ReceiveRing>(entries, ring_, "receive queue");
  Message ask;
  ask.ask = Ask::make_receives;
  ask.numbers[0] = entries;
  number_ = device.link().make(ask, file.get(), "receive queue");
}

SoftReceiveQueue::~SoftReceiveQueue() { device_.link().drop(Ask::drop_receives, number_); }

Status SoftReceiveQueue::post(std::uint64_t id, void* address, std::uint32_t bytes,
                              std::uint32_t local_key) noexcept {
  const Status status = stage(id);
  staging_.restart();
  if (status == Status::done && append(id, address, bytes, local_key))
    device_.doorbell().ring(number_ | Doorbells::receive_bit);
  return status;
}

Status SoftReceiveQueue::stage(std::uint64_t id) noexcept {
  if (device_.link().lost()) return Status::broken;
  if (id >> 63U != 0) return Status::bad_argument;
  if (staged_tail() - ring_.as<ReceiveRing>()->head.load(std::memory_order_acquire) >= entries_)
    return Status::retry_queue_full;  // R4, pairs with R3
  ++staging_.staged_entries;
  return Status::done;
}

bool SoftReceiveQueue::append(std::uint64_t id, const void* address, std::uint32_t bytes,
                              std::uint32_t local_key) noexcept {
  ReceiveRing& ring = *ring_.as<ReceiveRing>();
  ReceiveSlot& slot = ring.slots[tail_ % entries_];
  slot.id = id;
  slot.address = reinterpret_cast<std::uintptr_t>(address);
  slot.bytes = bytes;
  slot.local_key = local_key;
  ring.tail.store(++tail_, std::memory_order_seq_cst);  // R1, pairs with R2
  if (ring.starved.load(std::memory_order_seq_cst) == 0) return false;
  ring.starved.store(0, std::memory_order_seq_cst);
  return true;
}

// --- Sends -----------------------------------------------------------------------------

SoftQueuePair::SoftQueuePair(SoftDevice& device, const QueuePairOptions& options)
    : device_(device),
      completions_(static_cast<SoftCompletionQueue&>(*options.completions)),
      entries_(options.send_queue_entries),
      receives_(static_cast<SoftReceiveQueue*>(options.receives)),
      managed_receives_(options.managed_receives ? receives_ : nullptr),
      managed_sends_(options.managed_sends) {
  const Descriptor file = make_ring<SendRing>(entries_, ring_, "send queue");
  cookie_ = device.enter(*this);
  Message ask;
  ask.ask = Ask::make_pair;
  ask.numbers = {completions_.number(), receives_ != nullptr ? receives_->number() : 0, entries_,
                 cookie_, options.remote_rights};
  ask.values = {options.managed_sends ? 1U : 0U, options.managed_receives ? 1U : 0U,
                options.receive_completions != nullptr
                    ? static_cast<SoftCompletionQueue&>(*options.receive_completions).number()
                    : 0U};
  try {
    number_ = device.link().make(ask, file.get(), "queue pair");
  } catch (...) {
    device.leave(cookie_, 0);
    throw;
  }
}

SoftQueuePair::~SoftQueuePair() {
  device_.link().drop(Ask::drop_pair, number_);
  device_.leave(cookie_, number_);
}

bool SoftQueuePair::is_acceptable(const WorkRequest& request) const noexcept {
  if (request.gather_count > gather_limit) return false;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < request.gather_count; ++i) bytes += request.gather[i].bytes;
  const Capabilities& capabilities = device_.capabilities();
  if (bytes > capabilities.message_max_bytes) return false;
  switch (request.opcode) {
    case Opcode::send:
    case Opcode::send_with_immediate:
    case Opcode::write:
    case Opcode::write_with_immediate:
      return !request.inline_data || bytes <= capabilities.inline_max_bytes;
    case Opcode::read: return !request.inline_data;
    case Opcode::fetch_add:
    case Opcode::compare_swap:
      return !request.inline_data && request.gather_count == 1 && bytes == sizeof(std::uint64_t);
    case Opcode::receive:
    case Opcode::wait: return false;
  }
  return false;
}

void SoftQueuePair::fill(SendSlot& slot, const WorkRequest& request) noexcept {
  slot.id = request.id;
  slot.remote_address = request.remote_address;
  slot.operand = request.operand;
  slot.compare = request.compare;
  slot.remote_key = request.remote_key;
  slot.immediate = request.immediate;
  slot.opcode = static_cast<std::uint8_t>(request.opcode);
  slot.gather_count = request.gather_count;
  slot.flags = static_cast<std::uint8_t>((request.signalled ? send_flag::signalled : 0) |
                                         (request.fenced ? send_flag::fenced : 0) |
                                         (request.inline_data ? send_flag::inline_data : 0) |
                                         (request.solicited ? send_flag::solicited : 0));
  std::uint32_t inline_bytes = 0;
  for (std::size_t i = 0; i < request.gather_count; ++i) {
    const Gather& part = request.gather[i];
    if (request.inline_data) {
      if (part.bytes > 0) std::memcpy(slot.inline_data + inline_bytes, part.address, part.bytes);
      inline_bytes += part.bytes;
    } else {
      slot.gather[i] = {reinterpret_cast<std::uintptr_t>(part.address), part.bytes, part.local_key};
    }
  }
  slot.inline_bytes = inline_bytes;
}

Status SoftQueuePair::post(const WorkRequest& request) noexcept {
  const Status status = stage(request);
  staging_.restart();
  if (status != Status::done) return status;
  append(request, now_ns());
  if (!managed_sends_) device_.doorbell().ring(number_);
  return Status::done;
}

Status SoftQueuePair::stage(const WorkRequest& request) noexcept {
  if (state_ == State::broken || device_.link().lost()) return Status::broken;
  // A send that nobody counts would keep its entry.
  if (state_ != State::established || !is_acceptable(request) ||
      (completions_.counting() && !request.signalled))
    return Status::bad_argument;
  if (!has_room()) return Status::retry_queue_full;
  ++staging_.staged_entries;
  return Status::done;
}

Status SoftQueuePair::stage_wait() noexcept {
  if (state_ == State::broken) return Status::broken;
  if (state_ != State::established) return Status::bad_argument;
  if (!has_room()) return Status::retry_queue_full;
  ++staging_.staged_entries;
  return Status::done;
}

bool SoftQueuePair::has_room() const noexcept {
  const std::uint32_t retired = completions_.counting()
                                    ? ring_.as<SendRing>()->head.load(std::memory_order_acquire)
                                    : retired_;  // S4, pairs with S3
  return staged_tail() - retired < entries_;
}

void SoftQueuePair::append(const WorkRequest& request, std::int64_t posted_ns) noexcept {
  SendSlot& slot = ring_.as<SendRing>()->slots[tail_ % entries_];
  fill(slot, request);
  slot.posted_ns = posted_ns;
  publish();
}

void SoftQueuePair::append_wait(std::uint32_t number, std::uint32_t index,
                                std::int64_t posted_ns) noexcept {
  WorkRequest request;
  request.opcode = Opcode::wait;
  request.operand = number;
  request.compare = index;
  append(request, posted_ns);
}

void SoftQueuePair::publish() noexcept {
  ring_.as<SendRing>()->tail.store(++tail_, std::memory_order_release);  // S1, pairs with S2
}

void SoftQueuePair::retire(std::uint32_t position, CompletionStatus status) noexcept {
  retired_ = position + 1;
  if (status != CompletionStatus::success) state_ = State::broken;
}

void SoftQueuePair::flush_locally() {
  completions_.settle();
  state_ = State::broken;
  if (completions_.counting()) return;
  const SendRing& ring = *ring_.as<SendRing>();
  for (; retired_ != tail_; ++retired_) {
    Completion completion;
    completion.id = ring.slots[retired_ % entries_].id;
    completion.status = CompletionStatus::flushed;
    completion.opcode = static_cast<Opcode>(ring.slots[retired_ % entries_].opcode);
    completion.queue_pair_number = number_;
    completions_.add_local(completion);
  }
}

}  // namespace overlap::fabric::soft
