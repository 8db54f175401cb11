// Whose turn it is, and what rounds have taken.
// SPDX-License-Identifier: BSD-3-Clause
#include "turns.hpp"

namespace overlap::speculative {

bool Turns::answers(Process to) noexcept {
  timed_ = false;
  if (to != partner_ || last_ != Last::received) {
    partner_ = nullptr;
    alternates_ = false;
    return false;
  }
  last_ = Last::sent;
  return alternates_;
}

CopyWay Turns::choose(std::uint64_t bytes) noexcept {
  const CopyWay way = ways_.choose(bytes);
  timed_ = ways_.ends_group();
  way_ = way;
  bytes_ = bytes;
  return way;
}

void Turns::received(Process from, std::uint64_t now_ns) noexcept {
  const bool answered = from == partner_ && last_ == Last::sent;
  if (answered && timed_) ways_.took(way_, bytes_, now_ns - started_ns_);
  timed_ = false;
  alternates_ = answered;
  partner_ = from;
  last_ = Last::received;
}

}  // namespace overlap::speculative
