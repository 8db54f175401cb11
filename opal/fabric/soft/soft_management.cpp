// Posting lists: everything is checked before anything is written.
// SPDX-License-Identifier: BSD-3-Clause
#include "soft_management.hpp"

#include "engine/host.hpp"
#include "soft_ring.hpp"

namespace overlap::fabric::soft {
namespace {

using Kind = fabric::Task::Kind;

[[nodiscard]] SoftQueuePair* pair_of(const fabric::Task& task) noexcept {
  return static_cast<SoftQueuePair*>(task.queue_pair);
}

[[nodiscard]] SoftCompletionQueue* queue_of(const fabric::Task& task) noexcept {
  return static_cast<SoftCompletionQueue*>(task.queue);
}

[[nodiscard]] bool fits(Kind kind, Opcode opcode) noexcept {
  if (kind == Kind::write_immediate) return opcode == Opcode::write_with_immediate;
  return opcode == Opcode::send || opcode == Opcode::send_with_immediate;
}

/// Of `tail` entries that are posted, how many an enable stands for. @returns  0: none, or too many
[[nodiscard]] std::uint32_t enabled_count(const fabric::Task& task, std::uint32_t tail,
                                          const EnableIndex& index) noexcept {
  const std::uint32_t posted = EnableIndex::ahead(tail & EnableIndex::mask, index.base());
  const std::uint32_t count = task.count == 0 ? posted : task.count;
  return count > posted ? 0 : count;
}

template <class Queue>
[[nodiscard]] Status stage_enable(const fabric::Task& task, Queue& queue) noexcept {
  EnableIndex& index = queue.staging().staged_index;
  const std::uint32_t count = enabled_count(task, queue.staged_tail(), index);
  if (count == 0 && task.count != 0) return Status::bad_argument;
  static_cast<void>(index.add(count, task.last));
  return Status::done;
}

/// The same for good. @returns  the absolute index
template <class Queue>
[[nodiscard]] std::uint32_t enable(const fabric::Task& task, Queue& queue) noexcept {
  EnableIndex& index = queue.staging().index;
  return index.add(enabled_count(task, queue.staged_tail(), index), task.last);
}

[[nodiscard]] std::uint8_t code(Command::Kind kind) noexcept {
  return static_cast<std::uint8_t>(kind);
}

}  // namespace

SoftManagementQueue::SoftManagementQueue(SoftDevice& device, std::uint32_t entries)
    : device_(device), completions_(device, entries), entries_(entries) {
  const Descriptor file = make_ring<ManagementRing>(entries, ring_, "management queue");
  Message ask;
  ask.ask = Ask::make_manager;
  ask.numbers[0] = entries;
  ask.numbers[1] = completions_.number();
  number_ = device.link().make(ask, file.get(), "management queue");
  completions_.set_owner(this);
  device.enter(*this);
}

SoftManagementQueue::~SoftManagementQueue() {
  device_.link().drop(Ask::drop_manager, number_);
  device_.leave(*this);
}

Posted SoftManagementQueue::post(std::uint64_t id, std::span<const fabric::Task> tasks) noexcept {
  if (failed_ || device_.link().lost()) return {Status::broken, 0};
  if (tasks.empty()) return {Status::bad_argument, 0};
  staged_ = 0;
  std::size_t count = 0;
  Status status = Status::done;
  while (count < tasks.size() && status == Status::done) status = stage(tasks[count++]);
  if (status == Status::done && staged_ == 0) status = stage_own();
  restart(tasks.first(count));
  if (status != Status::done) return {status, count - 1};

  const std::int64_t now = now_ns();
  const std::uint32_t first = tail_;
  for (const fabric::Task& task : tasks) append(task, now);
  restart(tasks);
  if (tail_ == first) append_own(code(Command::Kind::nothing), 0, 0, now);
  ManagementRing& ring = *ring_.as<ManagementRing>();
  for (std::uint32_t i = first; i != tail_; ++i) ring.slots[i % entries_].id = id;
  ring.slots[(tail_ - 1) % entries_].signalled = 1;
  ring.tail.store(tail_, std::memory_order_release);  // M1, pairs with M2
  device_.doorbell().put(number_ | Doorbells::management_bit);
  device_.doorbell().ring();
  return {};
}

Status SoftManagementQueue::stage(const fabric::Task& task) noexcept {
  SoftQueuePair* pair = pair_of(task);
  if (pair != nullptr && !pair->belongs_to(device_)) return Status::bad_argument;
  if (pair == nullptr && task.kind != Kind::wait) return Status::bad_argument;
  switch (task.kind) {
    case Kind::send:
    case Kind::write_immediate:
      return fits(task.kind, task.request.opcode) ? pair->stage(task.request)
                                                  : Status::bad_argument;
    case Kind::receive:
      if (pair->receives() == nullptr || task.request.gather_count > 1) return Status::bad_argument;
      return pair->receives()->stage(task.request.id);
    case Kind::wait: {
      SoftCompletionQueue* queue = queue_of(task);
      if (queue == nullptr || !queue->belongs_to(device_)) return Status::bad_argument;
      if (const Status status = queue->stage_wait(task.count, task.last); status != Status::done)
        return status;
      return pair != nullptr ? pair->stage_wait() : stage_own();
    }
    case Kind::send_enable:
      if (!pair->managed_sends()) return Status::bad_argument;
      if (const Status status = stage_enable(task, *pair); status != Status::done) return status;
      return stage_own();
    case Kind::receive_enable:
      if (pair->managed_receives() == nullptr) return Status::bad_argument;
      if (const Status status = stage_enable(task, *pair->managed_receives());
          status != Status::done)
        return status;
      return stage_own();
  }
  return Status::bad_argument;
}

Status SoftManagementQueue::stage_own() noexcept {
  ++staged_;
  if (staged_ > entries_) return Status::bad_argument;  // never
  return tail_ + staged_ - retired_ > entries_ ? Status::retry_queue_full : Status::done;
}

void SoftManagementQueue::restart(std::span<const fabric::Task> tasks) noexcept {
  for (const fabric::Task& task : tasks) {
    if (SoftQueuePair* pair = pair_of(task); pair != nullptr) {
      pair->staging().restart();
      if (pair->receives() != nullptr) pair->receives()->staging().restart();
    }
    if (SoftCompletionQueue* queue = queue_of(task); queue != nullptr) queue->staging().restart();
  }
}

void SoftManagementQueue::append(const fabric::Task& task, std::int64_t posted_ns) noexcept {
  SoftQueuePair* pair = pair_of(task);
  const WorkRequest& request = task.request;
  switch (task.kind) {
    case Kind::send:
    case Kind::write_immediate:
      pair->append(request, posted_ns);
      if (!pair->managed_sends()) device_.doorbell().put(pair->number());
      return;
    case Kind::receive: {
      const Gather part = request.gather_count == 1 ? request.gather[0] : Gather{};
      SoftReceiveQueue& receives = *pair->receives();
      if (receives.append(request.id, part.address, part.bytes, part.local_key))
        device_.doorbell().put(receives.number() | Doorbells::receive_bit);
      return;
    }
    case Kind::wait: {
      SoftCompletionQueue& queue = *queue_of(task);
      const std::uint32_t index = queue.staging().index.add(task.count, task.last);
      if (pair == nullptr)
        return append_own(code(Command::Kind::wait), queue.number(), index, posted_ns);
      pair->append_wait(queue.number(), index, posted_ns);
      if (!pair->managed_sends()) device_.doorbell().put(pair->number());
      return;
    }
    case Kind::send_enable:
      return append_own(code(Command::Kind::send_enable), pair->number(), enable(task, *pair),
                        posted_ns);
    case Kind::receive_enable:
      return append_own(code(Command::Kind::receive_enable), pair->number(),
                        enable(task, *pair->managed_receives()), posted_ns);
  }
}

void SoftManagementQueue::append_own(std::uint8_t kind, std::uint32_t number, std::uint32_t index,
                                     std::int64_t posted_ns) noexcept {
  ManagementSlot& slot = ring_.as<ManagementRing>()->slots[tail_++ % entries_];
  slot = ManagementSlot{};
  slot.posted_ns = posted_ns;
  slot.number = number;
  slot.index = index;
  slot.kind = kind;
}

void SoftManagementQueue::retire(std::uint32_t position, CompletionStatus status) noexcept {
  retired_ = position + 1;
  failed_ |= status != CompletionStatus::success;
}

void SoftManagementQueue::flush_locally() {
  completions_.settle();
  failed_ = true;
  const ManagementRing& ring = *ring_.as<ManagementRing>();
  for (; retired_ != tail_; ++retired_) {
    const ManagementSlot& slot = ring.slots[retired_ % entries_];
    if (slot.signalled == 0) continue;
    Completion completion;
    completion.id = slot.id;
    completion.status = CompletionStatus::flushed;
    completion.opcode = Opcode::wait;
    completions_.add_local(completion);
  }
}

}  // namespace overlap::fabric::soft
