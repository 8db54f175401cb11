// The queues of the software device as a client uses them: shared memory, no system calls but a
// doorbell when the device sleeps.
// SPDX-License-Identifier: BSD-3-Clause
#include <time.h>

#include <cerrno>
#include <cstring>

#include "soft_device.hpp"

namespace overlap::fabric::soft {
namespace {

/// Make a ring's memory with its header.
template <class Ring>
[[nodiscard]] Descriptor make_ring(std::uint32_t entries, Mapping& mapping, const char* what) {
  Descriptor file = make_memory_file(what, ring_bytes<Ring>(entries));
  if (file) mapping = Mapping::map(file.get(), 0, ring_bytes<Ring>(entries));
  if (!mapping)
    throw Error(Error::Kind::system, std::string("no memory for a ") + what +
                                         " of the software device: " + std::strerror(errno));
  mapping.as<Ring>()->header = AreaHeader{.entries = entries};
  return file;
}

[[nodiscard]] std::int64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

// --- Completions -----------------------------------------------------------------------

SoftCompletionQueue::SoftCompletionQueue(SoftDevice& device, std::uint32_t entries)
    : device_(device), entries_(entries) {
  const Descriptor file = make_ring<CompletionRing>(entries, ring_, "completion queue");
  Message ask;
  ask.ask = Ask::make_completions;
  ask.numbers[0] = entries;
  number_ = device.link().make(ask, file.get(), "completion queue");
}

SoftCompletionQueue::~SoftCompletionQueue() { device_.link().drop(Ask::drop_completions, number_); }

std::size_t SoftCompletionQueue::poll(std::span<Completion> out) noexcept {
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

void SoftCompletionQueue::add_local(const Completion& completion) {
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
  if (completion.opcode != Opcode::receive) {
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
  if (device_.link().lost()) return Status::broken;
  if (id >> 63U != 0) return Status::bad_argument;
  ReceiveRing& ring = *ring_.as<ReceiveRing>();
  if (tail_ - ring.head.load(std::memory_order_acquire) >= entries_)
    return Status::retry_queue_full;  // R4, pairs with R3
  ReceiveSlot& slot = ring.slots[tail_ % entries_];
  slot.id = id;
  slot.address = reinterpret_cast<std::uintptr_t>(address);
  slot.bytes = bytes;
  slot.local_key = local_key;
  ring.tail.store(++tail_, std::memory_order_seq_cst);  // R1, pairs with R2
  if (ring.starved.load(std::memory_order_seq_cst) != 0) {
    ring.starved.store(0, std::memory_order_seq_cst);
    device_.doorbell().ring(number_ | Doorbells::receive_bit);
  }
  return Status::done;
}

// --- Sends -----------------------------------------------------------------------------

SoftQueuePair::SoftQueuePair(SoftDevice& device, const QueuePairOptions& options)
    : device_(device),
      completions_(static_cast<SoftCompletionQueue&>(*options.completions)),
      entries_(options.send_queue_entries) {
  const Descriptor file = make_ring<SendRing>(entries_, ring_, "send queue");
  cookie_ = device.enter(*this);
  Message ask;
  ask.ask = Ask::make_pair;
  ask.numbers = {
      completions_.number(),
      options.receives != nullptr ? static_cast<SoftReceiveQueue&>(*options.receives).number() : 0,
      entries_, cookie_, options.remote_rights};
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
  if (state_ == State::broken || device_.link().lost()) return Status::broken;
  if (state_ != State::established || !is_acceptable(request)) return Status::bad_argument;
  if (tail_ - retired_ >= entries_) return Status::retry_queue_full;
  SendRing& ring = *ring_.as<SendRing>();
  SendSlot& slot = ring.slots[tail_ % entries_];
  fill(slot, request);
  slot.posted_ns = now_ns();
  ring.tail.store(++tail_, std::memory_order_release);  // S1, pairs with S2
  device_.doorbell().ring(number_);
  return Status::done;
}

void SoftQueuePair::retire(std::uint32_t position, CompletionStatus status) noexcept {
  retired_ = position + 1;
  if (status != CompletionStatus::success) state_ = State::broken;
}

void SoftQueuePair::flush_locally() {
  completions_.settle();
  state_ = State::broken;
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
