// When it is of no use to wait for send buffers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

/// Tells a peer that takes no messages from a moment in which all buffers are under way.
///
/// Buffers come back as their messages arrive, in microseconds; those of a peer outside MPI do not,
/// for as long as it computes. So more are worth their memory, which stays pinned, only where
/// passes of progress go by in each of which somebody waits, and hardly any buffer comes back: many
/// passes, or few of a program that computes between them.
class BufferShortage {
 public:
  static constexpr std::uint64_t patience_passes = 256;
  static constexpr std::uint64_t patience_ns = 1'000'000;
  /// So many at least, however long they take: what has come back is seen in a pass.
  static constexpr std::uint64_t least_passes = 4;
  /// So many times as long where the last attempt to have more was refused, which costs as much as
  /// many passes.
  static constexpr std::uint64_t patience_refused = 64;

  /// @param enough  buffers: where as many come back in that time, waiting helps
  explicit BufferShortage(std::uint32_t enough) noexcept : enough_(enough) {}

  void note_pass() noexcept { ++pass_; }
  void note_returned() noexcept { ++returned_; }
  /// Somebody waits for a buffer. @param now_ns  of a clock that only goes forward
  /// @returns  true, once in a while: waiting is of no use
  [[nodiscard]] bool note_wait(std::uint64_t now_ns) noexcept {
    if (pass_ > last_wait_ + 1) begin(now_ns);  // nobody has waited in between
    last_wait_ = pass_;
    const std::uint64_t passes = pass_ - begin_pass_;
    const bool is_long = passes >= least_passes && now_ns - begin_ns_ >= patience_ * patience_ns;
    if (!is_long && passes < patience_ * patience_passes) return false;
    const bool hopeless = returned_ < enough_;
    begin(now_ns);
    return hopeless;
  }
  /// What has come of the attempt to have more.
  void note_attempt(bool has_more) noexcept { patience_ = has_more ? 1 : patience_refused; }

 private:
  void begin(std::uint64_t now_ns) noexcept {
    begin_pass_ = pass_;
    begin_ns_ = now_ns;
    returned_ = 0;
  }

  std::uint32_t enough_;
  std::uint32_t returned_ = 0;  ///< since the beginning
  std::uint64_t pass_ = 2;      ///< nobody has waited in the last one
  std::uint64_t last_wait_ = 0;
  std::uint64_t begin_pass_ = 0;  ///< in which the present time of waiting began
  std::uint64_t begin_ns_ = 0;    ///< when it did
  std::uint64_t patience_ = 1;
};

}  // namespace overlap::ring
