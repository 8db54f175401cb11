// The client's side of the software device.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "layout.hpp"
#include "opal/fabric/fabric.hpp"
#include "soft_doorbell.hpp"
#include "soft_link.hpp"

namespace overlap::fabric::soft {

class SoftDevice;
class SoftQueuePair;

class SoftCompletionQueue final : public CompletionQueue {
 public:
  SoftCompletionQueue(SoftDevice& device, std::uint32_t entries);
  ~SoftCompletionQueue() override;
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }
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
};

class SoftReceiveQueue final : public ReceiveQueue {
 public:
  SoftReceiveQueue(SoftDevice& device, std::uint32_t entries);
  ~SoftReceiveQueue() override;
  [[nodiscard]] Status post(std::uint64_t id, void* address, std::uint32_t bytes,
                            std::uint32_t local_key) noexcept override;

  [[nodiscard]] std::uint32_t number() const noexcept { return number_; }

 private:
  SoftDevice& device_;
  std::uint32_t entries_;
  std::uint32_t tail_ = 0;
  std::uint32_t number_ = 0;
  Mapping ring_;
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

  SoftDevice& device_;
  SoftCompletionQueue& completions_;
  std::uint32_t entries_;
  std::uint32_t tail_ = 0;
  std::uint32_t retired_ = 0;  ///< entries whose completion, or a later one's, was polled
  std::uint32_t number_ = 0;
  std::uint32_t cookie_ = 0;
  State state_ = State::fresh;
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
  SoftLink link_;
  SoftDoorbell doorbell_;
  std::uint64_t instance_;  ///< of the device process
  std::uint32_t client_;    ///< our number there
  std::uint32_t events_seen_ = 0;
  std::uint32_t empty_polls_ = 0;
};

/// Polls without result between two looks at the socket: each look is a system call.
inline constexpr std::uint32_t polls_per_look = 4096;
/// So many polls without result are waiting.
inline constexpr std::uint32_t polls_per_wait = 16;

}  // namespace overlap::fabric::soft
