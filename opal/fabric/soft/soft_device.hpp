// The client's side of the software device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "layout.hpp"
#include "opal/fabric/management_queue.hpp"
#include "soft_doorbell.hpp"
#include "soft_link.hpp"

namespace overlap::fabric::soft {

class SoftDevice;
class SoftManagementQueue;
class SoftQueuePair;

/// An index of a queue that task lists name, and what the list that is being posted has done to the
/// queue so far. A list is gone through twice: first only here, then for good.
template <class Index>
struct Staging {
  Index index;
  Index staged_index;
  std::uint32_t staged_entries = 0;

  /// Forget the list, or begin another one.
  void restart() noexcept {
    staged_index = index;
    staged_entries = 0;
  }
};

class SoftCompletionQueue final : public CompletionQueue {
 public:
  /// @param counting  a queue that only waits read
  SoftCompletionQueue(SoftDevice& device, std::uint32_t entries, bool counting = false);
  ~SoftCompletionQueue() override;
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  [[nodiscard]] bool counting() const noexcept { return counting_; }
  [[nodiscard]] bool belongs_to(const SoftDevice& device) const noexcept {
    return &device_ == &device;
  }
  /// The queue whose lists are reported here.
  void set_owner(SoftManagementQueue* owner) noexcept { owner_ = owner; }
  /// Is there an index so far ahead? @errors  retry_queue_full | bad_argument
  [[nodiscard]] Status stage_wait(std::uint32_t count, bool last) noexcept;
  [[nodiscard]] Staging<WaitIndex>& staging() noexcept { return staging_; }
  /// The device has gone: report these behind what it has reported.
  void add_local(const Completion& completion);
  /// The device has gone: take over what it has reported.
  void settle();

 private:
  [[nodiscard]] Completion take(const CompletionSlot& slot) noexcept;

  SoftDevice& device_;
  std::uint32_t entries_;
  std::uint32_t head_ = 0;
  std::uint32_t number_ = 0;
  std::uint32_t empty_polls_ = 0;
  Mapping ring_;
  std::deque<Completion> local_;
  SoftManagementQueue* owner_ = nullptr;
  bool counting_;
  Staging<WaitIndex> staging_;
};

class SoftReceiveQueue final : public ReceiveQueue {
 public:
  SoftReceiveQueue(SoftDevice& device, std::uint32_t entries);
  ~SoftReceiveQueue() override;
  [[nodiscard]] Status post(std::uint64_t id, void* address, std::uint32_t bytes,
                            std::uint32_t local_key) noexcept override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
  /// Is there room for one more? @errors  as post()
  [[nodiscard]] Status stage(std::uint64_t id) noexcept;
  /// Entries that are posted, those of the list that is being posted too.
  [[nodiscard]] std::uint32_t staged_tail() const noexcept {
    return tail_ + staging_.staged_entries;
  }
  [[nodiscard]] Staging<EnableIndex>& staging() noexcept { return staging_; }
  /// Append an entry for which there is room. @returns  the device waits for it
  [[nodiscard]] bool append(std::uint64_t id, const void* address, std::uint32_t bytes,
                            std::uint32_t local_key) noexcept;

 private:
  SoftDevice& device_;
  std::uint32_t entries_;
  std::uint32_t tail_ = 0;
  std::uint32_t number_ = 0;
  Mapping ring_;
  Staging<EnableIndex> staging_;
};

class SoftQueuePair final : public QueuePair {
 public:
  /// The connection as its user has been told.
  enum class State : std::uint8_t { fresh, asking, established, broken };

  SoftQueuePair(SoftDevice& device, const QueuePairOptions& options);
  ~SoftQueuePair() override;
  [[nodiscard]] Status post(const WorkRequest& request) noexcept override;
  /// See Copier.
  [[nodiscard]] WriteOrder write_order() const noexcept override {
    return {LastByte::last, UINT32_MAX};
  }
  [[nodiscard]] std::uint32_t number() const noexcept override { return number_; }

  [[nodiscard]] State state() const noexcept { return state_; }
  void set_state(State state) noexcept { state_ = state; }
  [[nodiscard]] bool managed_sends() const noexcept { return managed_sends_; }
  /// nullptr: its receives are not managed
  [[nodiscard]] SoftReceiveQueue* managed_receives() const noexcept { return managed_receives_; }
  [[nodiscard]] SoftReceiveQueue* receives() const noexcept { return receives_; }
  /// May one more request, or a wait, be posted? @errors  as post()
  [[nodiscard]] Status stage(const WorkRequest& request) noexcept;
  [[nodiscard]] Status stage_wait() noexcept;
  [[nodiscard]] std::uint32_t staged_tail() const noexcept {
    return tail_ + staging_.staged_entries;
  }
  [[nodiscard]] Staging<EnableIndex>& staging() noexcept { return staging_; }
  /// Append what may be posted, and ring no doorbell.
  void append(const WorkRequest& request, std::int64_t posted_ns) noexcept;
  void append_wait(std::uint32_t number, std::uint32_t index, std::int64_t posted_ns) noexcept;
  /// A completion of this queue was polled: everything up to its position is free again.
  void retire(std::uint32_t position, CompletionStatus status) noexcept;
  /// The device has gone: complete what is posted.
  void flush_locally();
  [[nodiscard]] bool belongs_to(const SoftDevice& device) const noexcept {
    return &device_ == &device;
  }

 private:
  [[nodiscard]] bool is_acceptable(const WorkRequest& request) const noexcept;
  static void fill(SendSlot& slot, const WorkRequest& request) noexcept;
  [[nodiscard]] bool has_room() const noexcept;
  void publish() noexcept;

  SoftDevice& device_;
  SoftCompletionQueue& completions_;
  std::uint32_t entries_;
  std::uint32_t tail_ = 0;
  std::uint32_t retired_ = 0;  ///< entries whose completion, or a later one's, was polled
  std::uint32_t number_ = 0;
  std::uint32_t cookie_ = 0;
  State state_ = State::fresh;
  SoftReceiveQueue* receives_;
  SoftReceiveQueue* managed_receives_;
  bool managed_sends_;
  Staging<EnableIndex> staging_;
  Mapping ring_;
};

class SoftDevice final : public Device, private LinkUser {
 public:
  explicit SoftDevice(const SoftOptions& options);
  ~SoftDevice() override;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  [[nodiscard]] Address address() const override;
  [[nodiscard]] bool may_reach(const Address& peer) const noexcept override;
  [[nodiscard]] Status register_memory(void* address, std::size_t bytes, unsigned rights,
                                       const Backing& backing,
                                       MemoryRegion& region) noexcept override;
  void deregister_memory(MemoryRegion& region) noexcept override;
  [[nodiscard]] std::unique_ptr<CompletionQueue> make_completion_queue(
      std::uint32_t entries) override;
  [[nodiscard]] std::unique_ptr<ReceiveQueue> make_receive_queue(std::uint32_t entries) override;
  [[nodiscard]] std::unique_ptr<QueuePair> make_queue_pair(
      const QueuePairOptions& options) override;
  [[nodiscard]] std::unique_ptr<CompletionQueue> make_counting_queue() override;
  [[nodiscard]] std::unique_ptr<ManagementQueue> make_management_queue(
      std::uint32_t entries) override;
  [[nodiscard]] Status connect(QueuePair& queue_pair, const Address& peer,
                               const PrivateData& data) noexcept override;
  [[nodiscard]] Status accept(std::uint64_t request, QueuePair& queue_pair) noexcept override;
  void reject(std::uint64_t request) noexcept override;
  [[nodiscard]] bool poll_event(Event& event) override;
  [[nodiscard]] int arrival_descriptor() const noexcept override { return doorbell_.arrivals(); }
  void arm_arrivals() noexcept override;

  // For the queues.
  [[nodiscard]] SoftLink& link() noexcept { return link_; }
  [[nodiscard]] SoftDoorbell& doorbell() noexcept { return doorbell_; }
  [[nodiscard]] std::uint32_t enter(SoftQueuePair& pair);
  void leave(std::uint32_t cookie, std::uint32_t number) noexcept;
  void enter(SoftManagementQueue& queue) { management_.push_back(&queue); }
  void leave(SoftManagementQueue& queue) noexcept { std::erase(management_, &queue); }
  [[nodiscard]] SoftQueuePair* find(std::uint32_t cookie, std::uint32_t number) noexcept;

 private:
  [[nodiscard]] Status begin_connecting(const Message& message, SoftQueuePair& pair) noexcept;
  [[nodiscard]] Status status_of(int failure) const noexcept;
  void take_event(const Message& message) override;
  void device_lost(const char* why) override;

  Capabilities capabilities_;
  // Before the link, which may report the device's end while it is being opened.
  std::deque<Event> events_;
  std::vector<SoftQueuePair*> pairs_;  ///< by cookie; nullptr: free
  std::vector<SoftManagementQueue*> management_;
  SoftLink link_;
  SoftDoorbell doorbell_;
  std::uint64_t instance_;  ///< of the device process
  std::uint32_t client_;    ///< our number there
  std::uint32_t events_seen_ = 0;
  std::uint32_t empty_polls_ = 0;
};

[[nodiscard]] std::int64_t now_ns() noexcept;

/// Polls without result between two looks at the socket: each look is a system call.
inline constexpr std::uint32_t polls_per_look = 4096;
/// So many polls without result are waiting.
inline constexpr std::uint32_t polls_per_wait = 16;

}  // namespace overlap::fabric::soft
