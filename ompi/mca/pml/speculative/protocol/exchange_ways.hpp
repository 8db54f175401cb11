// The way of messages of which several are exchanged at a time.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstdint>

#include "copy_ways.hpp"
#include "ompi/mca/common/overlap/protocol/exchange_run.hpp"

namespace overlap::speculative {

/// Exchanges of several messages at a time go both ways in turns, and then the faster one.
///
/// What passes from RTS to DONE is mostly the other messages there, so no message tells what its
/// way takes. What tells it is the time from one exchange to the next, by the size of its first
/// message: it holds everything, also what one way costs the next computation (data that its
/// receiver has read is no longer in its sender's cache). Where that time is mostly computation the
/// ways are hard to tell apart, and then it matters little which one it is.
///
/// The slower one of two processes says how long an exchange takes. So where one of them decides
/// for itself alone, little is gained before the other one has done the same, and both may stay
/// with what is slower. Of two processes one leads: the other one sends the way that it has been
/// sent to.
///
/// Two or more peers: the exchanges of all that are led go the way of one of them, so that a time
/// of any is of one way. Of several communicators with one peer the exchanges of one are timed:
/// from one of them to one of another is only the time in which both are posted.
///
/// @thread  progress lock held
class ExchangeWays {
 public:
  /// What begins.
  struct Exchange {
    const void* owner = nullptr;  ///< tells its communicator from others
    std::uint64_t bytes = 0;      ///< of its first message
    std::uint32_t messages = 1;   ///< in it, about
    std::uint64_t now_ns = 0;
  };
  /// An exchange begins. @param run  of its peer @returns  whether it is read
  [[nodiscard]] bool begin(ExchangeRun& run, const Exchange& exchange) noexcept;
  /// One begins that is pushed whatever is faster: its time says nothing.
  static void begin_pushed(ExchangeRun& run) noexcept { run.tells = false; }

 private:
  /// Others' exchanges until one of them leads, or is timed: there are none of the other any more.
  static constexpr std::uint32_t followers_max = 1024;
  static constexpr std::uint32_t others_max = 64;
  /// A group has so many exchanges, and so many messages. In its first exchange the other process
  /// still goes the other way, the second one finds caches as that one leaves them, and the kernel
  /// is slow for the first dozen messages when it has copied none for a while.
  static constexpr std::uint32_t group_rounds = 5, cold_rounds = 2;
  static constexpr std::uint32_t group_messages = 24, cold_messages = 12;

  /// The exchanges of a size that go one way.
  struct Group {
    std::uint32_t number = 0;  ///< 0: there has been none
    bool is_warm = false;
    CopyWay way = CopyWay::fragments;
    std::uint32_t rounds = 0;             ///< exchanges of the leader in it
    std::uint32_t messages = 0;           ///< in those
    const ExchangeRun* leader = nullptr;  ///< compared only
    std::uint32_t followers = 0;          ///< since its last one
  };
  [[nodiscard]] Group& group_of(std::uint64_t bytes) noexcept {
    return groups_of_[size_classes_.of(bytes)];
  }
  void begin_round(Group& group, const Exchange& exchange) noexcept;
  [[nodiscard]] static bool leads(Group& group, const ExchangeRun& run) noexcept;
  void note_end(const ExchangeRun& run, std::uint64_t now_ns) noexcept;

  /// A message of these is a group.
  static constexpr CopyTrials trials{
      .smallest_width = 13, .change_groups = 2, .decides_early = false};

  CopyWays ways_{trials};
  SizeClasses size_classes_{trials.smallest_width};
  std::uint32_t groups_ = 0;  ///< made so far
  std::array<Group, SizeClasses::count> groups_of_{};
};

}  // namespace overlap::speculative
