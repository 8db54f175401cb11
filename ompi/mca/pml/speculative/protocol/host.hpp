// What the protocol asks of its surroundings while it looks at a message.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "communicator.hpp"

namespace overlap::speculative {

class Host {
 public:
  virtual ~Host() = default;
  /// Put `payload` at `offset_bytes` of the receive's buffer, now: the message is gone afterwards.
  /// What lies behind the capacity is discarded.
  virtual void deliver(ReceiveOp& receive, std::uint64_t offset_bytes,
                       std::span<const std::byte> payload) = 0;
  /// Copy memory of a peer now, before this returns. @returns  false: that is not possible
  [[nodiscard]] virtual bool copy(Peer& /*from*/, const RemoteMemory& /*memory*/,
                                  std::span<std::byte> /*into*/) {
    return false;
  }
  /// A message of this peer is left: take_left() is called until none is, and copies from any
  /// thread.
  virtual void note_left(Peer& /*from*/) {}
  /// None is left any more.
  virtual void note_none_left() {}
  /// The time of a steady clock, 0: not known. Asked when an RTS is kept, and when it is matched.
  [[nodiscard]] virtual std::uint64_t now_ns() const { return 0; }
  /// Does this process end? Then peers that wait for nothing may be gone.
  [[nodiscard]] virtual bool is_ending() const { return false; }
  /// The number of a process of a communicator, as its own Config::process says it. Asked once per
  /// stream at most.
  [[nodiscard]] virtual std::uint64_t process_of(const Communicator& comm, std::int32_t rank) = 0;
};

}  // namespace overlap::speculative
