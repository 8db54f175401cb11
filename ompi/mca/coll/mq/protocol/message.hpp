// What ranks of a stream tell each other.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "counter.hpp"

namespace overlap::coll_mq {

enum class MessageKind : std::uint8_t {
  data,  ///< what a plan sends, with its payload
  ask,   ///< tell me when every collective before `sequence` is over with you
  tell,  ///< `oldest` is news
};

/// A message names what it is for, so that messages may overtake each other. The surroundings add
/// the stream (a communicator, or a persistent collective of it) and the sender.
struct Message {
  MessageKind kind{};
  std::uint16_t step = 0;  ///< data: its number among the sender's to this peer in the collective
  Sequence sequence;
  Sequence oldest;  ///< all collectives before it are over with the sender

  [[nodiscard]] constexpr bool operator==(const Message&) const noexcept = default;
};

}  // namespace overlap::coll_mq
