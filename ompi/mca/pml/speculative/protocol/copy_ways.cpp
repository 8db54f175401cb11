// Keeps what messages have taken, and chooses.
// SPDX-License-Identifier: BSD-3-Clause
#include "copy_ways.hpp"

#include <algorithm>

namespace overlap::speculative {
namespace {

constexpr float interval_limit = 1 << 16;  ///< groups

constexpr CopyWay other(CopyWay way) noexcept {
  return way == CopyWay::read ? CopyWay::fragments : CopyWay::read;
}

}  // namespace

float CopyWays::Size::ratio() const noexcept {
  const auto [least, most] = std::minmax(costs[0].ns_per_kib, costs[1].ns_per_kib);
  return costs[0].samples == 0 || costs[1].samples == 0 || least <= 0 ? 1.0F : most / least;
}

/// Of the way that has been tried less often.
std::uint32_t CopyWays::Size::tries() const noexcept {
  return std::min(costs[0].tries, costs[1].tries);
}

/// As often tried, and far apart: that is enough.
void CopyWays::Size::end_first_tries(std::uint32_t first_groups) noexcept {
  if (costs[0].samples != costs[1].samples || ratio() < far_slower) return;
  costs[0].tries = costs[1].tries = first_groups;
  before_retry_groups = interval_groups = interval_max_groups;
}

CopyWay CopyWays::choose(std::uint64_t bytes) noexcept {
  Size& size = size_of(bytes);
  if (size.left_messages == 0) begin_group(size);
  ends_group_ = --size.left_messages == 0;
  return size.way;
}

void CopyWays::begin_group(Size& size) const noexcept {
  const Cost& read = size.of(CopyWay::read);
  const Cost& fragments = size.of(CopyWay::fragments);
  std::uint32_t groups = 1;
  if (size.tries() < trials_.first_groups) {
    size.way = fragments.tries < read.tries ? CopyWay::fragments : CopyWay::read;
  } else {
    size.way = faster_of(size);
    if (--size.before_retry_groups == 0) {
      size.way = other(size.way);
      const bool rare = size.interval_groups >= interval_max_groups;
      if (rare && size.way == CopyWay::read) groups = trials_.rare_retry_groups;
      put_off_retry(size);
    }
  }
  size.left_messages = groups * trials_.group_messages;
  Cost& chosen = size.of(size.way);
  if (chosen.tries < trials_.first_groups) ++chosen.tries;
}

/// What has become slow may be so for a moment, and the other way's time is an old one.
CopyWay CopyWays::faster_of(Size& size) const noexcept {
  const Cost& read = size.of(CopyWay::read);
  const Cost& fragments = size.of(CopyWay::fragments);
  // A way that has never been seen to end is none to keep to.
  const bool pushes = read.samples == 0 || fragments.ns_per_kib < read.ns_per_kib;
  const CopyWay faster = pushes ? CopyWay::fragments : CopyWay::read;
  if (trials_.change_groups != 0 && size.faster && *size.faster != faster)
    size.before_retry_groups = size.interval_groups = trials_.change_groups;
  size.faster = faster;
  return faster;
}

void CopyWays::put_off_retry(Size& size) noexcept {
  const auto longest =
      std::max(interval_max_groups,
               static_cast<std::uint32_t>(std::min(far_slower * size.ratio(), interval_limit)));
  size.interval_groups = std::min(2 * size.interval_groups, longest);
  size.before_retry_groups = size.interval_groups;
}

void CopyWays::took(CopyWay way, std::uint64_t bytes, std::uint64_t ns) noexcept {
  Size& size = size_of(bytes);
  Cost& cost = size.of(way);
  const float now = ns_per_kib(ns, bytes);
  const bool was_slower = cost.ns_per_kib > size.of(other(way)).ns_per_kib;
  if (cost.samples < trials_.first_groups) {
    cost.ns_per_kib = cost.samples == 0 ? now : std::min(cost.ns_per_kib, now);
    ++cost.samples;
    if (trials_.decides_early) size.end_first_tries(trials_.first_groups);
  } else {
    cost.ns_per_kib = near_least(cost.ns_per_kib, now);
  }
  if (was_slower && now < size.of(other(way)).ns_per_kib) {
    size.interval_groups = interval_min_groups;  // the machine has changed
    size.before_retry_groups = 1;
  }
}

}  // namespace overlap::speculative
