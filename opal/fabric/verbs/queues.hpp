// Completion queue, receive queue and queue pair: the data path.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <deque>
#include <optional>

#include "arrivals.hpp"
#include "connector.hpp"
#include "number_table.hpp"
#include "posted_requests.hpp"

namespace overlap::fabric::verbs {

using ProtectionDomain = Handle<ibv_pd, ibv_dealloc_pd>;
using DeviceCompletionQueue = Handle<ibv_cq, ibv_destroy_cq>;
using DeviceReceiveQueue = Handle<ibv_srq, ibv_destroy_srq>;
using DeviceQueuePair = Handle<ibv_qp, ibv_destroy_qp>;

class VerbsQueuePair;

/// What the parts of one device share.
struct Core {
  Core(Port opened, const VerbsOptions& options);

  Port port;
  Arrivals arrivals;
  ProtectionDomain domain;
  Capabilities capabilities;
  NumberTable<VerbsQueuePair> queue_pairs;  ///< by the device's numbers
  std::uint32_t last_number = 0;
  std::uint32_t last_entries_missed = 0;  ///< queue pairs whose end the device has not told in full
  Connector connector;
};

class VerbsCompletionQueue final : public CompletionQueue {
 public:
  VerbsCompletionQueue(Core& core, std::uint32_t entries);
  VerbsCompletionQueue(const VerbsCompletionQueue&) = delete;
  VerbsCompletionQueue& operator=(const VerbsCompletionQueue&) = delete;
  ~VerbsCompletionQueue() override { core_.arrivals.remove(*queue_); }
  [[nodiscard]] std::size_t poll(std::span<Completion> out) noexcept override;

  /// Take out what has arrived so far and keep it for poll(). Nothing of a queue pair that is being
  /// destroyed may stay behind: the device gives its number to another one.
  void drain() noexcept;
  /// Report a request that the device has dropped with its queue pair.
  void add_flushed(std::uint64_t id, std::uint32_t queue_pair_number);
  [[nodiscard]] ibv_cq* device_queue() const noexcept { return queue_.get(); }

 private:
  [[nodiscard]] std::size_t take_kept(std::span<Completion> out) noexcept;
  /// @returns  nullopt when the user has been told of it before
  [[nodiscard]] std::optional<Completion> translate(const ibv_wc& entry) noexcept;

  Core& core_;
  DeviceCompletionQueue queue_;
  std::deque<Completion> kept_;
};

class VerbsReceiveQueue final : public ReceiveQueue {
 public:
  VerbsReceiveQueue(Core& core, std::uint32_t entries);
  [[nodiscard]] Status post(std::uint64_t id, void* address, std::uint32_t bytes,
                            std::uint32_t local_key) noexcept override;
  [[nodiscard]] ibv_srq* device_queue() const noexcept { return queue_.get(); }

 private:
  DeviceReceiveQueue queue_;
};

/// Goes before its queues.
class VerbsQueuePair final : public QueuePair {
 public:
  VerbsQueuePair(Core& core, VerbsCompletionQueue& completions, VerbsReceiveQueue& receives,
                 std::uint32_t send_queue_entries);
  VerbsQueuePair(const VerbsQueuePair&) = delete;
  VerbsQueuePair& operator=(const VerbsQueuePair&) = delete;
  ~VerbsQueuePair() override;

  [[nodiscard]] Status post(const WorkRequest& request) noexcept override;
  [[nodiscard]] WriteOrder write_order() const noexcept override;
  [[nodiscard]] std::uint32_t number() const noexcept override { return number_; }
  [[nodiscard]] Connection& connection() noexcept { return connection_; }
  [[nodiscard]] PostedRequests& posted_requests() noexcept { return posted_; }

 private:
  void wait_for_flush() noexcept;

  Core& core_;
  VerbsCompletionQueue& completions_;
  DeviceQueuePair queue_pair_;
  Connection connection_;
  PostedRequests posted_;
  std::uint32_t number_ = 0;  ///< ours, counted up: the device uses its own again
  std::uint32_t inline_max_bytes_;
};

/// How a queue pair is asked for; used for probing, too.
[[nodiscard]] ibv_qp_init_attr queue_pair_attributes(ibv_cq* completions, ibv_srq* receives,
                                                     std::uint32_t send_queue_entries,
                                                     std::uint32_t gather_max,
                                                     std::uint32_t inline_bytes) noexcept;

}  // namespace overlap::fabric::verbs
