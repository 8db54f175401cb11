// A device for tests: it registers, makes queues and posts, and completes what it is told to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "opal/fabric/fabric.hpp"
#include "opal/mca/btl/ring/reclaim.hpp"

namespace overlap::ring::sim {

class FakeDevice;

class FakeCompletionQueue final : public fabric::CompletionQueue {
 public:
  FakeCompletionQueue(std::vector<FakeCompletionQueue*>& all, std::uint32_t entries)
      : entries(entries) {
    all.push_back(this);
  }
  [[nodiscard]] std::size_t poll(std::span<fabric::Completion> out) noexcept override {
    ++polls;
    std::size_t count = 0;
    for (; count < out.size() && !waiting.empty(); ++count) {
      out[count] = waiting.front();
      waiting.pop_front();
    }
    return count;
  }

  std::uint32_t entries;
  std::deque<fabric::Completion> waiting;
  int polls = 0;
};

class FakeQueuePair final : public fabric::QueuePair {
 public:
  explicit FakeQueuePair(std::uint32_t number) : number_(number) {}
  [[nodiscard]] fabric::Status post(const fabric::WorkRequest&) noexcept override {
    return fabric::Status::done;
  }
  [[nodiscard]] fabric::WriteOrder write_order() const noexcept override { return {}; }
  [[nodiscard]] std::uint32_t number() const noexcept override { return number_; }

 private:
  std::uint32_t number_;
};

/// One entry of the receive queue.
struct PostedReceive {
  std::uint64_t id;
  void* address;
  std::uint32_t bytes;
  std::uint32_t local_key;
};

class FakeReceiveQueue final : public fabric::ReceiveQueue {
 public:
  explicit FakeReceiveQueue(FakeDevice& device) : device_(device) {}
  [[nodiscard]] fabric::Status post(std::uint64_t id, void* address, std::uint32_t bytes,
                                    std::uint32_t local_key) noexcept override;

 private:
  FakeDevice& device_;
};

/// @see fabric::Device. What a test sets or looks at is public.
class FakeDevice final : public fabric::Device {
 public:
  fabric::Capabilities able;
  int registrations_allowed = 1000;                        ///< so many more
  std::optional<fabric::Error::Kind> queue_pairs_refused;  ///< why
  fabric::Status post_status = fabric::Status::done;
  int refusals = 0;                                       ///< of registrations
  std::set<std::uint32_t> registered;                     ///< keys
  std::map<std::uint32_t, fabric::MemoryRegion> regions;  ///< by key, also those that have gone
  std::map<std::uint32_t, unsigned> rights;               ///< by key
  std::vector<FakeCompletionQueue*> queues;
  std::vector<PostedReceive> posted;

  [[nodiscard]] const fabric::Capabilities& capabilities() const noexcept override { return able; }
  [[nodiscard]] fabric::Address address() const override { return {}; }
  [[nodiscard]] bool may_reach(const fabric::Address&) const noexcept override { return true; }

  [[nodiscard]] fabric::Status register_memory(void* address, std::size_t bytes, unsigned wanted,
                                               const fabric::Backing&,
                                               fabric::MemoryRegion& region) noexcept override {
    if (registrations_allowed == 0) {
      ++refusals;
      return fabric::Status::refused;
    }
    --registrations_allowed;
    region = {address, bytes, ++last_key_, last_key_, this};
    registered.insert(last_key_);
    regions[last_key_] = region;
    rights[last_key_] = wanted;
    return fabric::Status::done;
  }
  void deregister_memory(fabric::MemoryRegion& region) noexcept override {
    registered.erase(region.local_key);
    region = {};
  }

  [[nodiscard]] std::unique_ptr<fabric::CompletionQueue> make_completion_queue(
      std::uint32_t entries) override {
    return std::make_unique<FakeCompletionQueue>(queues, entries);
  }
  [[nodiscard]] std::unique_ptr<fabric::ReceiveQueue> make_receive_queue(std::uint32_t) override {
    return std::make_unique<FakeReceiveQueue>(*this);
  }
  [[nodiscard]] std::unique_ptr<fabric::QueuePair> make_queue_pair(
      const fabric::QueuePairOptions&) override {
    if (queue_pairs_refused) throw fabric::Error(*queue_pairs_refused, "no queue pair is left");
    return std::make_unique<FakeQueuePair>(++last_number_);
  }

  [[nodiscard]] fabric::Status connect(fabric::QueuePair&, const fabric::Address&,
                                       const fabric::PrivateData&) noexcept override {
    return fabric::Status::done;
  }
  [[nodiscard]] fabric::Status accept(std::uint64_t, fabric::QueuePair&) noexcept override {
    return fabric::Status::done;
  }
  void reject(std::uint64_t) noexcept override {}
  [[nodiscard]] bool poll_event(fabric::Event&) override { return false; }
  [[nodiscard]] int arrival_descriptor() const noexcept override { return -1; }
  void arm_arrivals() noexcept override {}

 private:
  std::uint32_t last_key_ = 0;
  std::uint32_t last_number_ = 0;
};

inline fabric::Status FakeReceiveQueue::post(std::uint64_t id, void* address, std::uint32_t bytes,
                                             std::uint32_t local_key) noexcept {
  if (device_.post_status == fabric::Status::done)
    device_.posted.push_back({id, address, bytes, local_key});
  return device_.post_status;
}

/// Registrations that are kept for the next time: each makes room for one other, and all together
/// for queue pairs.
class FakeReclaim final : public Reclaim {
 public:
  explicit FakeReclaim(FakeDevice& device) noexcept : device_(device) {}
  [[nodiscard]] bool try_reclaim() noexcept override {
    if (kept == 0) return false;
    ++device_.registrations_allowed;
    if (--kept == 0) device_.queue_pairs_refused.reset();
    return true;
  }

  int kept = 0;

 private:
  FakeDevice& device_;
};

/// What RegisteredMemory reports to in a test.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] inline void throw_refused(const char* what, std::size_t) { throw Refused(what); }

}  // namespace overlap::ring::sim
