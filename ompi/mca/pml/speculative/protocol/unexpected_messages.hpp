// The messages of a process that no posted receive has matched: their memory and their number.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "communicator.hpp"
#include "counters.hpp"
#include "operations.hpp"

namespace overlap::speculative {

/// Makes unexpected messages and puts them into the queues of their communicators. Outlives the
/// communicators: what is left in their queues returns its memory to here.
class UnexpectedMessages {
 public:
  explicit UnexpectedMessages(Counters& counters) : counters_(counters) {}

  /// @param room_bytes  of the payload that is kept with it
  [[nodiscard]] Arrived& make(Peer& peer, std::int32_t tag, Kind kind, std::uint64_t length_bytes,
                              std::uint64_t room_bytes);
  void store(Arrived& message);

 private:
  Counters& counters_;
  ArrivedPool pool_;
};

}  // namespace overlap::speculative
