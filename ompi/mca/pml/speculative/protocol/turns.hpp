// Processes that answer each other (MPI_Send, MPI_Recv): whose sender waits for an answer anyway
// loses nothing by waiting for its receiver's copy.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "copy_ways.hpp"

namespace overlap::speculative {

/// Which messages that could go eagerly through shared memory are better read by their receiver.
///
/// An eager message costs two copies, and its sender goes on at once. Read through the kernel it
/// costs one, which the sender waits for: in a ping-pong that is the shorter way where the kernel
/// copies quickly. A message is an answer when the blocking calls of this process with that one
/// have alternated for a round: received, sent, received. A receive that is posted beforehand
/// (MPI_Sendrecv, collectives), two sends in a row, or another process in between start anew. What
/// rounds take decides between the ways.
///
/// @thread  one, which is alone in MPI
class Turns {
 public:
  /// Smaller messages are not looked at.
  static constexpr std::uint64_t message_min_bytes = 4096;

  /// What is known of a process by its address; never looked into.
  using Process = const void*;

  /// A blocking send to a process begins. @returns  it is an answer
  [[nodiscard]] bool answers(Process to) noexcept;
  /// The way of an answer. @returns  `fragments`: eagerly
  [[nodiscard]] CopyWay choose(std::uint64_t bytes) noexcept;
  /// Is the round timed that the answer has begun? Then `started` and `received` say when.
  [[nodiscard]] bool is_timed() const noexcept { return timed_; }
  void started(std::uint64_t now_ns) noexcept { started_ns_ = now_ns; }
  /// A blocking receive from a process has ended. @param now_ns  0: not timed
  void received(Process from, std::uint64_t now_ns) noexcept;

 private:
  enum class Last : std::uint8_t { sent, received };
  /// A way that has not been used for a while is slow at first, above all the kernel's.
  static constexpr std::uint32_t group_messages = 4;
  static constexpr int smallest_width = 13;  ///< of sizes below 8 KiB

  CopyWays ways_{smallest_width, group_messages};
  Process partner_ = nullptr;
  Last last_ = Last::sent;
  bool alternates_ = false;  ///< a whole round has been seen
  bool timed_ = false;
  CopyWay way_ = CopyWay::fragments;  ///< of the last answer
  std::uint64_t bytes_ = 0;
  std::uint64_t started_ns_ = 0;
};

}  // namespace overlap::speculative
