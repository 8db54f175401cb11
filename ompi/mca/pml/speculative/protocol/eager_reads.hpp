// Messages that could go eagerly through shared memory, and are better read by their receiver.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "copy_ways.hpp"
#include "exchange_ways.hpp"
#include "replies.hpp"
#include "ompi/mca/common/overlap/protocol/read_pace.hpp"

namespace overlap::speculative {

/// Which of the messages that could go eagerly are read, and what both ways take.
///
/// Pushed, a message is copied twice, and its sender goes on at once. Read through the kernel it is
/// copied once. Data that its sender has just written is in that one's cache, and quicker to push;
/// data that the receiver's cache still has from the last time (a coefficient, a broadcast of the
/// same buffer, a benchmark) is far quicker to read. So both ways are timed, for each power of two
/// of the sizes. Sends behind sends are pushed: the copies of both processes are made side by side,
/// and nobody waits for an answer. Several at a time that answer several go the faster way for such
/// (ExchangeWays).
///
/// @thread  progress lock held
class EagerReads {
 public:
  /// Smaller messages are not looked at.
  static constexpr std::uint64_t message_min_bytes = Replies::message_min_bytes;

  struct Choice {
    CopyWay way = CopyWay::fragments;  ///< `fragments`: the message is pushed
    bool timed = false;
    /// Timed, and its time says what its way takes: one that has not been used for a while is slow
    /// at first, above all the kernel's.
    bool sample = false;
    bool paced = false;      ///< a read that tells whether one of the two processes is late
    Replies::Place place{};  ///< of one of several
  };
  enum class Kind : std::uint8_t { plain, waiting, synchronous };
  /// A message that could be read.
  struct Send {
    std::uint64_t bytes = 0;
    std::uint32_t arrived = 0;  ///< messages of its receiver so far
    Kind kind = Kind::plain;    ///< waiting: its caller waits for it in MPI
    bool leads = false;         ///< this process, not the receiver (ExchangeWays)
  };
  /// What is known of who receives it.
  struct Receiver {
    ReadPace& pace;
    ExchangeRun& run;
    Replies& replies;  ///< in one communicator
  };
  using Clock = std::uint64_t() noexcept;
  /// @param now_ns  asked where several begin
  [[nodiscard]] Choice choose(const Receiver& receiver, const Send& send, Clock& now_ns) noexcept;
  /// For each pushed message that is copied to its receive here. @returns  whether it is timed
  [[nodiscard]] bool times_copy(std::uint64_t bytes) noexcept { return copies_.times_next(bytes); }
  /// A timed one has been copied.
  void copied(std::uint64_t bytes, std::uint64_t took_ns) noexcept { copies_.took(bytes, took_ns); }
  /// A sample has been pushed. @param took_ns  its sender
  void pushed(std::uint64_t bytes, std::uint64_t took_ns) noexcept;
  /// A message has been read. Where the receiver had to come to MPI first, or the sender to look
  /// for DONE, the time says nothing of the way. A receive with gaps unpacks within it.
  /// @param took_ns  from its RTS to its DONE
  void read(const Receiver& receiver, const Choice& choice, std::uint64_t bytes,
            std::uint64_t took_ns) noexcept;
  /// A message that was to be read had to be pushed: the receiver may not read.
  static void refused(const Receiver& receiver) noexcept;

 private:
  [[nodiscard]] bool exchange_is_read(const Receiver& receiver, const Replies::Place& place,
                                      const Send& send, Clock& now_ns) noexcept;

  static constexpr int smallest_width = 13;  ///< of sizes below 8 KiB
  /// Reads are slow for the first dozen messages, and again when there have been none for a while.
  static constexpr CopyTrials trials{.smallest_width = smallest_width,
                                     .group_messages = 4,
                                     .first_groups = 5,
                                     .rare_retry_groups = 4};

  CopyWays ways_{trials};  ///< of those that are alone
  ExchangeWays exchange_ways_;
  ReceiveCopies copies_{smallest_width};
};

}  // namespace overlap::speculative
