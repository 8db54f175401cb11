// How a send stands to what its receiver has sent.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

namespace overlap::speculative {

/// Whom a send finds at the other side.
enum class SendTurn : std::uint8_t {
  ahead,    ///< behind sends that its receiver has not answered: a stream
  alone,    ///< it answers the only message of its receiver: a round trip, or an exchange
  several,  ///< one of several messages that answer several: an exchange of more than one at a time
};

/// What a peer has sent that sends to it have not answered yet.
class Replies {
 public:
  struct Place {
    SendTurn turn = SendTurn::ahead;
    bool first = false;      ///< since the peer's last message
    bool to_reads = false;   ///< first: of what it answers something was to be read
    std::uint8_t among = 1;  ///< so many messages of the peer it answers with those behind it

    /// Of a send whose caller waits for it in MPI, and sends nothing meanwhile.
    [[nodiscard]] constexpr Place of_waiting() const noexcept {
      if (turn != SendTurn::several) return *this;
      return {.turn = first ? SendTurn::alone : SendTurn::ahead, .first = first};
    }
    /// Of a synchronous send: it waits for its receive either way, which says nothing of the
    /// receiver.
    [[nodiscard]] static constexpr Place of_synchronous() noexcept {
      return {.turn = SendTurn::alone};
    }
  };
  /// For each send that could be read. @param arrived  messages of the peer so far; wraps
  [[nodiscard]] Place note_send(std::uint32_t arrived) noexcept {
    const std::uint32_t news = arrived - std::exchange(seen_, arrived);
    const bool first = news != 0;
    // What is never answered is forgotten, half of it each time.
    if (first) owed_ = static_cast<std::uint8_t>(std::min(news + owed_ / 2, owed_max));
    const std::uint8_t owed = owed_;
    if (owed == 0) return {.turn = SendTurn::ahead, .first = first};
    --owed_;
    const bool alone = first && owed == 1;
    return {.turn = alone ? SendTurn::alone : SendTurn::several,
            .first = first,
            .to_reads = first && std::exchange(was_read_, false),
            .among = owed};
  }
  /// A message of the peer that could have gone eagerly is to be read.
  void note_read() noexcept { was_read_ = true; }

 private:
  static constexpr std::uint32_t owed_max = UINT8_MAX;

  std::uint32_t seen_ = 0;
  std::uint8_t owed_ = 0;
  bool was_read_ = false;
};

}  // namespace overlap::speculative
