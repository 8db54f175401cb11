// Unexpected messages of a process.
// SPDX-License-Identifier: BSD-3-Clause
#include "unexpected_messages.hpp"

#include <algorithm>

namespace overlap::speculative {

Arrived& UnexpectedMessages::make(Peer& peer, std::int32_t tag, Kind kind,
                                  std::uint64_t length_bytes, std::uint64_t room_bytes) {
  Arrived* message = pool_.make(room_bytes);
  message->peer = &peer;
  message->tag = tag;
  message->kind = kind;
  message->length_bytes = length_bytes;
  return *message;
}

void UnexpectedMessages::store(Arrived& message) {
  Communicator& comm = *message.peer->comm;
  comm.store(message);
  counters_.unexpected_queue_max = std::max(counters_.unexpected_queue_max, comm.unexpected_count);
}

}  // namespace overlap::speculative
