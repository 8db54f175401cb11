// The layout of messages.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <type_traits>

#include "message.hpp"
#include "plan.hpp"
#include "sender_identity.hpp"

namespace overlap::coll_mq {

/// In front of each message: whose it is, and what it is for.
struct MessageHead {
  std::uint64_t process = 0;  ///< of the sender
  std::uint32_t context = 0;  ///< number of the communicator
  std::uint32_t birth = 0;    ///< the sender's count of its communicators
  Rank source = 0;            ///< in the union of an intercommunicator's groups
  std::uint32_t stream = 0;   ///< 0: the communicator; else a persistent collective of it
  std::uint32_t sequence = 0;
  std::uint32_t oldest = 0;
  std::uint16_t step = 0;
  MessageKind kind{};
  std::uint8_t unused = 0;
  std::uint32_t bytes = 0;   ///< of the payload, all parts of it
  std::uint32_t offset = 0;  ///< of the part that follows; tell: the asker's birth
  std::uint32_t era = 0;     ///< of the sender's PML: collectives agree on communicators

  [[nodiscard]] Birth sender() const noexcept { return {process, birth}; }
  /// Control messages have no payload, so no offset: an answer shows the birth of the asker.
  void set_answered(std::uint32_t asker_birth) noexcept { offset = asker_birth; }
  [[nodiscard]] bool is_answer() const noexcept { return kind == MessageKind::tell; }
  [[nodiscard]] bool answers(std::uint32_t own_birth) const noexcept {
    return is_answer() && offset == own_birth;
  }
  [[nodiscard]] Message message() const noexcept {
    return {kind, step, Sequence{sequence}, Sequence{oldest}};
  }
  void set(const Message& message) noexcept {
    kind = message.kind;
    step = message.step;
    sequence = message.sequence.value();
    oldest = message.oldest.value();
  }
};
static_assert(sizeof(MessageHead) == 48 && std::is_trivially_copyable_v<MessageHead>);

}  // namespace overlap::coll_mq
