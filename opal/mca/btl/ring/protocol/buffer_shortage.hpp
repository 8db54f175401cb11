// When it is of no use to wait for send buffers.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

/// Tells a peer that takes no messages from a moment in which all buffers are under way.
///
/// Buffers come back as their messages arrive, in microseconds; those of a peer outside MPI do not,
/// for as long as it computes. So more are worth their memory, which stays pinned, only where
/// passes of progress go by in each of which somebody waits, and hardly any buffer comes back.
class BufferShortage {
 public:
  static constexpr std::uint64_t patience_passes = 256;
  /// Where the last attempt to have more was refused: it has cost as much as many passes.
  static constexpr std::uint64_t refused_passes = 64 * patience_passes;

  /// @param enough  buffers: where as many come back in that time, waiting helps
  explicit BufferShortage(std::uint32_t enough) noexcept : enough_(enough) {}

  void note_pass() noexcept { ++pass_; }
  void note_returned() noexcept { ++returned_; }
  /// Somebody waits for a buffer. @returns  true, once in a while: waiting is of no use
  [[nodiscard]] bool note_wait() noexcept {
    if (pass_ > last_wait_ + 1) begin();  // nobody has waited in between
    last_wait_ = pass_;
    if (pass_ < begin_ + patience_) return false;
    const bool hopeless = returned_ < enough_;
    begin();
    return hopeless;
  }
  /// What has come of the attempt to have more.
  void note_attempt(bool has_more) noexcept {
    patience_ = has_more ? patience_passes : refused_passes;
  }

 private:
  void begin() noexcept {
    begin_ = pass_;
    returned_ = 0;
  }

  std::uint32_t enough_;
  std::uint32_t returned_ = 0;  ///< since begin_
  std::uint64_t pass_ = 2;      ///< nobody has waited in the last one
  std::uint64_t last_wait_ = 0;
  std::uint64_t begin_ = 0;  ///< pass in which the present time of waiting began
  std::uint64_t patience_ = patience_passes;
};

}  // namespace overlap::ring
