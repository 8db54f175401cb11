// Completion queues: which queue pair reports through which, and what has completed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "opal/fabric/fabric.hpp"

#include "protocol/completion_room.hpp"
#include "reclaim.hpp"

namespace overlap::ring {

/// A completion queue, and how much of it is promised to queue pairs.
struct CompletionGroup {
  std::unique_ptr<fabric::CompletionQueue> queue;
  CompletionRoom room;
};

/// Gives the room in its completion queue back behind a queue pair.
struct QueuePairDeleter {
  CompletionGroup* group = nullptr;
  std::uint32_t entries = 0;

  void operator()(fabric::QueuePair* queue_pair) const noexcept {
    delete queue_pair;
    group->room.give_back(entries);
  }
};
using QueuePairPointer = std::unique_ptr<fabric::QueuePair, QueuePairDeleter>;

/// Makes queue pairs, with completion queues as they need them, and takes completions from the
/// queues in turn, a batch at a time.
///
/// What handling one completion calls may ask for the next one: it comes from the same batch, so
/// that nothing is overtaken by an event that came after it.
///
/// @thread  Guard held
class Completions {
 public:
  /// @param device, kept  outlive it; the latter is given up before a queue is refused for want of
  /// memory
  /// @param send_queue_entries  of each queue pair
  /// @param receive_buffers_max  which may all be reported through any of the queues
  Completions(fabric::Device& device, Reclaim& kept, std::uint32_t send_queue_entries,
              std::uint32_t receive_buffers_max) noexcept
      : device_(device),
        kept_(kept),
        send_queue_entries_(send_queue_entries),
        receive_buffers_max_(receive_buffers_max) {}
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;

  /// @param remote_rights  of the peer
  /// @returns  to be destroyed before this
  /// @throws fabric::Error
  [[nodiscard]] QueuePairPointer make_queue_pair(fabric::ReceiveQueue& receives,
                                                 unsigned remote_rights);

  /// Poll, unless some completions are left. @returns  false when there are none
  [[nodiscard]] bool try_fill() noexcept {
    if (batch_next_ == batch_count_) fill();
    return batch_next_ != batch_count_;
  }
  /// Take the next one of the batch. @returns  false when it has come to its end
  [[nodiscard]] bool try_next(fabric::Completion& next) noexcept {
    if (batch_next_ == batch_count_) return false;
    next = batch_[batch_next_++];
    return true;
  }

 private:
  [[nodiscard]] QueuePairPointer try_once(fabric::ReceiveQueue& receives, unsigned remote_rights);
  /// A queue with room for one queue pair more, which is taken.
  [[nodiscard]] CompletionGroup& take_room();
  void fill() noexcept;

  fabric::Device& device_;
  Reclaim& kept_;
  std::uint32_t send_queue_entries_;
  std::uint32_t receive_buffers_max_;
  std::vector<std::unique_ptr<CompletionGroup>> groups_;
  std::size_t next_group_ = 0;  ///< index of the one that is polled first
  std::array<fabric::Completion, 16> batch_;
  std::size_t batch_next_ = 0;
  std::size_t batch_count_ = 0;
};

}  // namespace overlap::ring
