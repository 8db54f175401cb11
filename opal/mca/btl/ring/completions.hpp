// Completion queues: which queue pair reports through which, and what has completed.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <memory>

#include "opal/fabric/fabric.hpp"

#include "protocol/completion_room.hpp"

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

}  // namespace overlap::ring
