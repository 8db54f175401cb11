// The queue pairs that are there, and the connections that they belong to.
// SPDX-License-Identifier: BSD-3-Clause
#include "btl_ring_queue_pairs.hpp"

namespace overlap::ring {

QueuePairPointer QueuePairs::make(Connection& connection) {
  receives_.grow();
  // Rings are written to; what is read or counted in belongs to large transfers.
  QueuePairPointer made = completions_.make_queue_pair(
      receives_.queue(),
      connection.purpose == Purpose::messages ? fabric::access::remote_write : fabric::access::any);
  by_number_[made->number()] = &connection;
  return made;
}

void QueuePairs::drop(Connection& connection) noexcept {
  for (auto* queue_pair : {&connection.queue_pair, &connection.mirror}) {
    if (*queue_pair != nullptr) by_number_.erase((*queue_pair)->number());
    queue_pair->reset();
  }
}

}  // namespace overlap::ring
