// Several small messages to one rank in one.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace overlap::newrma {

/// What a sender puts together: each message behind the number of its bytes, eight of them.
class Bundle {
 public:
  using Length = std::uint64_t;

  Bundle() = default;
  /// @param room_bytes  of the bundle: it takes no more
  explicit Bundle(std::uint64_t room_bytes) noexcept : room_bytes_(room_bytes) {}

  /// Is there room for one more message?
  [[nodiscard]] bool has_room(std::uint64_t bytes) const noexcept {
    return bytes_.size() + sizeof(Length) + bytes <= room_bytes_;
  }
  /// @param bytes  of the next message, for which there is room
  /// @returns  where to write it, until the next call
  [[nodiscard]] std::span<std::byte> add(std::uint64_t bytes) {
    const Length length = bytes;
    const std::size_t start = bytes_.size();
    bytes_.resize(start + sizeof length + bytes);  // if that throws, nothing has been added
    std::memcpy(bytes_.data() + start, &length, sizeof length);
    last_ = start + sizeof length;
    ++messages_;
    return last();
  }
  /// The message that was added last, until the next call; none: empty.
  [[nodiscard]] std::span<std::byte> last() noexcept { return std::span(bytes_).subspan(last_); }
  /// Is there room for so much more of it?
  [[nodiscard]] bool can_extend(std::uint64_t bytes) const noexcept {
    return messages_ != 0 && bytes_.size() + bytes <= room_bytes_;
  }
  /// @param bytes  more of the last message, for which there is room
  /// @returns  where to write them, until the next call
  [[nodiscard]] std::span<std::byte> extend(std::uint64_t bytes) {
    const std::size_t end = bytes_.size();
    bytes_.resize(end + bytes);
    const Length length = bytes_.size() - last_;
    std::memcpy(bytes_.data() + last_ - sizeof length, &length, sizeof length);
    return std::span(bytes_).subspan(end);
  }
  [[nodiscard]] std::size_t messages() const noexcept { return messages_; }
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return bytes_; }
  /// The only message.
  [[nodiscard]] std::span<const std::byte> message() const noexcept {
    return bytes().subspan(sizeof(Length));
  }

  /// Hand over each message of a bundle that has come. @param take  called with its bytes
  /// @returns  false: it does not end with the end of a message
  template <class Take>
  [[nodiscard]] static bool for_each(std::span<const std::byte> bytes, Take&& take) {
    Length length = 0;
    while (bytes.size() >= sizeof length) {
      std::memcpy(&length, bytes.data(), sizeof length);
      bytes = bytes.subspan(sizeof length);
      if (length > bytes.size()) return false;
      take(bytes.first(length));
      bytes = bytes.subspan(length);
    }
    return bytes.empty();
  }

 private:
  std::vector<std::byte> bytes_;
  std::size_t last_ = 0;  ///< where the last message begins
  std::size_t messages_ = 0;
  std::uint64_t room_bytes_ = 0;
};

/// Which operations to one rank go out at once, and which wait for more of them: the first few go,
/// because the program may compute next; of those that it issues in a row behind them many share a
/// message. They wait until there are enough, something else is sent to that rank, or a progress
/// turn has brought no more.
class BurstPace {
 public:
  /// @param at_once  so many of a row go
  explicit constexpr BurstPace(unsigned at_once) noexcept : at_once_(at_once) {}

  /// One more operation. @param turn  number of the progress turn; wraps
  [[nodiscard]] bool holds(std::uint32_t turn) noexcept {
    // A long row has turns in it: those that its own calls take.
    const bool goes_on = turn == turn_ || (issued_ > at_once_ && turn - turn_ == 1);
    if (!goes_on) issued_ = 0;
    turn_ = turn;
    return ++issued_ > at_once_;
  }
  /// The program has waited for those before: the row has ended.
  void restart() noexcept { issued_ = 0; }
  /// A look in a progress turn: has the row ended?
  [[nodiscard]] bool has_ended() noexcept { return std::exchange(looked_at_, issued_) == issued_; }

 private:
  unsigned at_once_;
  std::uint32_t turn_ = 0;
  std::uint64_t issued_ = 0;
  std::uint64_t looked_at_ = 0;
};

}  // namespace overlap::newrma
