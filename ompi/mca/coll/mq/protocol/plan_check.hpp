// Carries out the plans of a whole group on symbols, and says what is wrong with them.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan.hpp"

namespace overlap::coll_mq::check {

/// What stands in a block: the operands of a reduction in their order, or one symbol that was
/// copied. Empty: nobody has written it.
using Value = std::vector<std::uint32_t>;

/// The caller's buffers at one rank, by block.
struct Memory {
  std::vector<Value> input;
  std::vector<Value> output;
  bool in_place = false;  ///< input is output: `input` is not used

  [[nodiscard]] std::vector<Value>& buffer(Buffer which, std::vector<Value>& scratch) noexcept {
    if (which == Buffer::scratch) return scratch;
    return which == Buffer::input && !in_place ? input : output;
  }
};

/// Ranks that are known to have started.
class Knowledge {
 public:
  explicit Knowledge(std::size_t ranks = 0) : words_((ranks + 63) / 64) {}
  void add(Rank rank) noexcept {
    words_[static_cast<std::size_t>(rank) / 64] |= std::uint64_t{1} << (rank % 64);
  }
  void add(const Knowledge& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  [[nodiscard]] std::size_t count() const noexcept;

 private:
  std::vector<std::uint64_t> words_;
};

struct Result {
  std::string defect;            ///< empty: the plans fit together and all ranks have ended
  std::vector<Knowledge> known;  ///< [rank]: whose start this rank's end depends on
  std::vector<Memory> memory;    ///< [rank], afterwards
};

/// Does each plan keep the rules of its type, and fit the plan at the other end of each edge? Then
/// run all: no message is lost, none waits forever, no place is used while a message may come into
/// it, none is changed after it was sent, nothing is read that nobody wrote.
///
/// A rank runs on until it waits for a message, so each run has the same result: one is enough.
///
/// @param plans   [rank]
/// @param memory  [rank]; empty: the collective moves no data
[[nodiscard]] Result run(const std::vector<Plan>& plans, std::vector<Memory> memory = {});

/// @returns  what is wrong with the plans as a barrier; empty: nothing
[[nodiscard]] std::string check_barrier(const std::vector<Plan>& plans);

}  // namespace overlap::coll_mq::check
