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
/// of any is of one way.
///
/// @thread  progress lock held
class ExchangeWays {
 public:
  /// An exchange begins. @param bytes  of its first message. Afterwards run.reads is its way.
  void begin(ExchangeRun& run, std::uint64_t bytes, std::uint64_t now_ns) noexcept;
  /// One begins whose way is given: its time says nothing.
  static void follow(ExchangeRun& run, bool reads) noexcept { run = {.reads = reads}; }

 private:
  /// Others' exchanges until one of them leads: the leader makes none any more.
  static constexpr std::uint32_t followers_max = 64;
  /// In the first exchange of a group the other process still goes the other way, and the second
  /// one finds caches as that one leaves them.
  static constexpr std::uint32_t cold_rounds = 2;

  /// The exchanges of a size that go one way.
  struct Group {
    std::uint32_t number = 0;
    bool has_ended = true;
    CopyWay way = CopyWay::fragments;
    const ExchangeRun* leader = nullptr;  ///< compared only
    std::uint32_t followers = 0;          ///< since its last one
  };
  [[nodiscard]] static bool leads(Group& group, const ExchangeRun& run) noexcept;

  static constexpr CopyTrials trials{
      .smallest_width = 13, .group_messages = 5, .first_groups = 3, .change_groups = 2};

  CopyWays ways_{trials};
  SizeClasses size_classes_{trials.smallest_width};
  std::uint32_t groups_ = 0;  ///< made so far
  std::array<Group, SizeClasses::count> group_of_{};
};

}  // namespace overlap::speculative
