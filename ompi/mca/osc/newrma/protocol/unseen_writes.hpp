// Writes that went to a target as messages, and whether it is known to have applied them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::newrma {

/// Whoever writes another way (a copy, an adapter) must not overtake messages that the target may
/// not have applied. Questions go to the target between the writes, in their order, and are
/// answered in that order: a write is known to be applied when a question behind it is answered. An
/// answer to one before it says nothing.
class UnseenWrites {
 public:
  /// A write goes as a message.
  void note_write() noexcept { needed_ = asked_ + 1; }
  /// A question goes whose answer says that everything before it has been applied; and it comes.
  void note_question() noexcept { ++asked_; }
  void note_answer() noexcept { ++answered_; }

  [[nodiscard]] bool any() const noexcept { return answered_ < needed_; }

 private:
  std::uint64_t asked_ = 0;
  std::uint64_t answered_ = 0;
  std::uint64_t needed_ = 0;  ///< answers, until all writes are known to be applied
};

}  // namespace overlap::newrma
