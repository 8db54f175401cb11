// The queue pairs that are there, and the connections that they belong to.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <unordered_map>

#include "opal/fabric/fabric.hpp"

#include "btl_ring_endpoint.hpp"
#include "completions.hpp"
#include "receive_buffers.hpp"

namespace overlap::ring {

/// @thread  Guard held
class QueuePairs {
 public:
  /// Both outlive it.
  QueuePairs(Completions& completions, ReceiveBuffers& receives) noexcept
      : completions_(completions), receives_(receives) {}
  QueuePairs(const QueuePairs&) = delete;
  QueuePairs& operator=(const QueuePairs&) = delete;

  /// @throws fabric::Error
  [[nodiscard]] QueuePairPointer make(Connection& connection);
  /// End an attempt: neither its events nor its completions come here any more.
  void drop(Connection& connection) noexcept;
  /// One more connection shares the receive buffers.
  void connected() {
    receives_.connected();
    receives_.grow();
  }
  void disconnected() noexcept { receives_.disconnected(); }

  /// @returns  nullptr: of a connection that has ended
  [[nodiscard]] Connection* find(std::uint32_t number) const noexcept {
    const auto found = by_number_.find(number);
    return found == by_number_.end() ? nullptr : found->second;
  }
  /// The connection that uses it. @returns  nullptr: one that lost a crossing, or the other end of
  /// a connection to ourselves; or it has gone
  [[nodiscard]] Connection* user_of(std::uint32_t number) const noexcept {
    Connection* const found = find(number);
    return found != nullptr && found->queue_pair != nullptr && found->queue_pair->number() == number
               ? found
               : nullptr;
  }

 private:
  Completions& completions_;
  ReceiveBuffers& receives_;
  std::unordered_map<std::uint32_t, Connection*> by_number_;
};

}  // namespace overlap::ring
