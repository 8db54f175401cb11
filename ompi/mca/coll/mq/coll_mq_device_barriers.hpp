// Barriers of a communicator as task lists of a management queue.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "coll_mq_device.hpp"
#include "coll_mq_request.hpp"
#include "protocol/plan.hpp"

namespace overlap::coll_mq {

/// A queue pair to each rank that the plan talks to, with a counting queue for what comes from it
/// and receive entries of its own; one counting queue for all sends (P6.4). Connected when the
/// first barrier begins, or when a peer begins; until then barriers wait in a list, and so do those
/// for which the queues have no room.
///
/// No rank is more than one barrier ahead of another that it signals: it ends a barrier after that
/// one has entered it. So `window` barriers that are outstanding need receive entries for one more.
///
/// @thread  progress lock held for every call
class DeviceBarriers {
 public:
  /// Begin to connect. @thread  MPI thread; throws fabric::Error
  DeviceBarriers(Device& device, Communicator& communicator, const Plan& plan);
  /// Everything that was sent has arrived before its queue pair goes.
  ~DeviceBarriers();
  DeviceBarriers(const DeviceBarriers&) = delete;
  DeviceBarriers& operator=(const DeviceBarriers&) = delete;

  /// @param execution  started; lives until it is over
  void start(Execution& execution);
  /// Take lists that have ended, and post what waits. @returns  barriers that have ended
  int poll();
  /// A peer asks for its connection.
  void accept(Rank peer, std::uint64_t request);
  /// @returns  false: the queue pair is another communicator's
  [[nodiscard]] bool take(const fabric::Event& event);

 private:
  struct Link {
    Rank peer = 0;
    std::uint32_t sends = 0;     ///< in one barrier
    std::uint32_t receives = 0;  ///< in one barrier
    bool established = false;
    std::unique_ptr<fabric::CompletionQueue> arrived;
    std::unique_ptr<fabric::ReceiveQueue> receive_queue;
    std::unique_ptr<fabric::QueuePair> queue_pair;
  };

  void make_link(const Edge& edge);
  void connect(Link& link);
  void translate(const Plan& plan);
  void supply(std::uint32_t barriers);
  [[nodiscard]] bool try_post(Execution& execution);
  void post_waiting();
  void check(const fabric::Completion& completion) const;
  void drain() noexcept;

  Device& device_;
  Communicator& communicator_;
  std::uint32_t window_;
  std::unique_ptr<fabric::CompletionQueue> sent_;
  std::vector<Link> links_;
  std::unique_ptr<fabric::ManagementQueue> queue_;
  /// Of a barrier; the first one, mostly left out, waits for the sends of earlier barriers.
  std::vector<fabric::Task> tasks_;
  std::uint32_t sends_ = 0;       ///< of a barrier
  std::uint32_t unwaited_ = 0;    ///< sends that no list has waited for
  std::uint32_t unsupplied_ = 0;  ///< barriers whose receive entries are still to be posted again
  std::uint32_t missing_ = 0;     ///< links that are not established
  std::uint64_t posted_ = 0;      ///< lists
  std::deque<Execution*> running_;
  std::deque<Execution*> waiting_;  ///< for connections, or for room
};

}  // namespace overlap::coll_mq
