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
  alone,    ///< the first one behind a message of its receiver: a round trip, an exchange of one
  several,  ///< one of several messages that answer several: an exchange of more than one at a time
};

/// What a peer has sent that sends to it have not answered yet.
class Replies {
 public:
  /// Smaller messages are answers, too, but make no exchange of several.
  static constexpr std::uint64_t message_min_bytes = 4096;

  struct Place {
    SendTurn turn = SendTurn::ahead;
    bool first = false;      ///< behind a message of the peer, and in front of what answers with it
    bool to_reads = false;   ///< first: of what it answers something was to be read
    std::uint8_t among = 1;  ///< so many messages of the peer it answers with those behind it
    std::uint8_t exchange = 0;  ///< its number; wraps

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

  /// For each send that could be read. @param arrived  messages of the peer of any size; wraps
  [[nodiscard]] Place note_send(std::uint32_t arrived) noexcept {
    const bool news = arrived != std::exchange(seen_, arrived);
    // Small messages that come in between change nothing.
    if (news && (came_ > 0 || owed_ == 0)) return begin();
    has_several_ = true;
    if (owed_ == 0) return {};
    return {.turn = SendTurn::several, .among = owed_--, .exchange = exchange_};
  }
  /// The peer has sent a message of message_min_bytes or more that could go eagerly.
  /// @param read  it is to be read
  void note_message(bool read) noexcept {
    if (came_ < most) ++came_;
    was_read_ = was_read_ || read;
  }

  /// The way of the present exchange of several: that of its first message.
  void set_reads(bool reads) noexcept { reads_ = reads; }
  [[nodiscard]] bool reads() const noexcept { return reads_; }
  /// The first message of an exchange of several has been read. What its sender sends now it does
  /// not send together with that one, and pushes.
  /// @returns  how many of the exchange have been sent
  [[nodiscard]] std::uint8_t end_first(const Place& first) noexcept {
    if (first.exchange != exchange_) return first.among;
    reads_ = false;
    return static_cast<std::uint8_t>(first.among - owed_);
  }

 private:
  /// The first send behind a message of the peer.
  [[nodiscard]] Place begin() noexcept {
    // What is never answered is forgotten, half of it each time.
    const auto owed = static_cast<std::uint8_t>(std::min(came_ + owed_ / 2, most));
    // Who has answered several with one will do so again.
    const bool several = owed > 1 && has_several_;
    Place place{
        .turn = SendTurn::alone, .first = true, .to_reads = was_read_, .exchange = ++exchange_};
    if (several) {
      place.turn = SendTurn::several;
      place.among = owed;
    }
    owed_ = owed > 0 ? owed - 1 : 0;
    came_ = 0;
    was_read_ = reads_ = has_several_ = false;
    return place;
  }

  static constexpr int most = UINT8_MAX;

  std::uint32_t seen_ = 0;
  std::uint8_t owed_ = 0;
  std::uint8_t came_ = 0;      ///< since the last first send
  std::uint8_t exchange_ = 0;  ///< the present one's number
  bool was_read_ : 1 = false;
  bool reads_ : 1 = false;
  bool has_several_ : 1 = true;  ///< the last exchange has more than one send
};

}  // namespace overlap::speculative
