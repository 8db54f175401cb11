// Management queues: lists of work requests, waits and enables that the device executes to their
// end with no processor time of the poster (P6.1, P6.2). An optional part of the RDMA interface:
// Capabilities::management_queues.
//
// Rules
//   Counting     A counting queue is a completion queue that only waits read: it counts successful
//                completions, nobody polls it, and it never overflows. Every completion counts, so
//                what arrives from whom is known only with one queue per queue pair and direction.
//                The first failed completion breaks the queue; so does the end of a queue pair that
//                reports its receives there.
//   Managed      Sends posted to a queue pair with managed sends stay in its send queue, and ring
//                no doorbell, until an enable reaches them; receives of one with managed receives
//                likewise, and they are its own alone. Enabled ones are executed in order.
//   List         post() appends a list to the queues that its tasks name, in the order of the
//                tasks, with one doorbell, and nothing of another list in between. All or nothing:
//                where a task is refused no task has been posted, and no index has moved.
//   Order        A management queue executes its waits and enables one after the other, its lists
//                in the order of posting. It waits for nothing else: sends run in their own queues,
//                and management queues do not know each other. A wait with a queue pair stands in
//                that one's send queue and holds back what is posted there behind it.
//   Wait         A wait is over as soon as its queue has ever counted so many completions as its
//                index says, whether that was before or after it was posted. One for more than will
//                come never ends, and nothing reports it.
//   Index        A wait's index is the queue's wait index plus its count. `last` moves the wait
//                index on by the largest count since it was last moved: without it several waits
//                have the same base. An enable's index is counted likewise from what was enabled of
//                its queue pair before. An enable past what has been posted is refused, so a send
//                stands before its enable. As on adapters, wait indices have 24 bits and enables
//                16: both may wrap, and a wait is less than 2^23 completions ahead of its queue
//                (retry_queue_full otherwise) or behind it. Indices are absolute: an enable stands
//                for all before it, also for those that have not been executed. So one management
//                queue enables the sends of a queue pair.
//   Completion   Each list makes one completion, with the identifier of the list: success when its
//                last wait or enable has been executed. It wakes a thread that sleeps (Arrivals).
//   Failure      A wait for a queue that breaks before it has counted enough fails its list, with
//                the status of the failed completion. All later lists are flushed and the
//                management queue is of no more use. What a list has posted to queue pairs and has
//                not enabled stays there. A queue pair whose completions are counted reports its
//                own failure by Event::peer_lost, too.
//   Room         The poster counts a management queue's entries: one for each wait and enable
//                without a polled completion of its list, at least one for each list. Entries of a
//                send queue whose completions are counted are free when they have been counted, so
//                every send there must be signalled.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fabric.hpp"

namespace overlap::fabric {

/// One entry of a task list.
struct Task {
  enum class Kind : std::uint8_t {
    send,             ///< `request` (send, send_with_immediate) to the send queue of `queue_pair`
    receive,          ///< gather[0] of `request` with its id to the receive queue of `queue_pair`
    write_immediate,  ///< `request` (write_with_immediate, also of 0 bytes) to the send queue
    wait,             ///< until `queue` has counted `count` more completions
    send_enable,      ///< the next `count` sends of `queue_pair`; 0: all that are posted
    receive_enable,   ///< the same for receives
  };
  Kind kind = Kind::wait;
  bool last = true;                  ///< wait, enables: see Index
  std::uint32_t count = 0;           ///< wait: 1 to 2^23 - 1; enables
  QueuePair* queue_pair = nullptr;   ///< wait: nullptr for the management queue itself
  CompletionQueue* queue = nullptr;  ///< wait: a counting queue
  WorkRequest request;
};

/// Outcome of posting a list.
struct Posted {
  Status status = Status::done;
  std::size_t task = 0;  ///< the first that was refused; 0 when nothing was or all of it
};

/// Executes waits and enables in order; has a completion queue of its own.
class ManagementQueue {
 public:
  virtual ~ManagementQueue() = default;
  /// Post one list.
  /// @param id  comes back in the list's completion
  /// @errors    retry_queue_full (a queue that a task names, or this one, has no room) |
  ///            bad_argument (also: more than its entries, an enable past what is posted)
  ///            | broken
  [[nodiscard]] virtual Posted post(std::uint64_t id, std::span<const Task> tasks) noexcept = 0;
  /// Where its lists are reported, one entry each (Opcode::wait); has room for all. Destroyed with
  /// the management queue.
  [[nodiscard]] virtual CompletionQueue& completions() noexcept = 0;
};

/// A queue's index that wraps at `bits`, and how tasks count from it (rule Index).
template <unsigned bits>
class RelativeIndex {
 public:
  static constexpr std::uint32_t mask = (std::uint32_t{1} << bits) - 1;

  /// @returns  the index of a task
  [[nodiscard]] constexpr std::uint32_t add(std::uint32_t count, bool last) noexcept {
    const std::uint32_t index = (base_ + count) & mask;
    largest_ = count > largest_ ? count : largest_;
    if (last) {
      base_ += largest_;
      largest_ = 0;
    }
    return index;
  }
  /// All that was committed; wraps at 32 bits.
  [[nodiscard]] constexpr std::uint32_t base() const noexcept { return base_; }

  /// How far `to` is ahead of `from`; half of the range counts as behind. @returns  0: it is not
  [[nodiscard]] static constexpr std::uint32_t ahead(std::uint32_t to,
                                                     std::uint32_t from) noexcept {
    const std::uint32_t distance = (to - from) & mask;
    return distance <= mask / 2 ? distance : 0;
  }

 private:
  std::uint32_t base_ = 0;
  std::uint32_t largest_ = 0;  ///< count since the base was moved
};

using WaitIndex = RelativeIndex<24>;
using EnableIndex = RelativeIndex<16>;

}  // namespace overlap::fabric
