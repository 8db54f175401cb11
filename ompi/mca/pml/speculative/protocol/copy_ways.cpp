// Keeps what messages have taken, and chooses.
// SPDX-License-Identifier: BSD-3-Clause
#include "copy_ways.hpp"

#include <algorithm>
#include <bit>

namespace overlap::speculative {
namespace {

constexpr CopyWay other(CopyWay way) noexcept {
  return way == CopyWay::read ? CopyWay::fragments : CopyWay::read;
}

}  // namespace

CopyWays::Size& CopyWays::size_of(std::uint64_t bytes) noexcept {
  constexpr int smallest_width = 16;  // of what is below 64 KiB
  const int above = std::bit_width(bytes) - smallest_width;
  return sizes_[static_cast<std::size_t>(std::clamp(above, 0, static_cast<int>(sizes) - 1))];
}

CopyWay CopyWays::choose(std::uint64_t bytes) noexcept {
  Size& size = size_of(bytes);
  const Cost& read = size.of(CopyWay::read);
  const Cost& fragments = size.of(CopyWay::fragments);
  CopyWay way = CopyWay::read;
  if (std::min(read.tries, fragments.tries) < first_tries) {
    way = fragments.tries < read.tries ? CopyWay::fragments : CopyWay::read;
  } else {
    way = fragments.ns_per_kib < read.ns_per_kib ? CopyWay::fragments : CopyWay::read;
    if (--size.before_retry_messages == 0) {
      way = other(way);
      size.interval_messages = std::min(2 * size.interval_messages, interval_max_messages);
      size.before_retry_messages = size.interval_messages;
    }
  }
  Cost& chosen = size.of(way);
  if (chosen.tries < first_tries) ++chosen.tries;
  return way;
}

void CopyWays::took(CopyWay way, std::uint64_t bytes, std::uint64_t ns) noexcept {
  constexpr float weight_down = 0.5F, weight_up = 0.125F, kib_bytes = 1024.0F;
  Size& size = size_of(bytes);
  Cost& cost = size.of(way);
  const float now = static_cast<float>(ns) * kib_bytes / static_cast<float>(bytes);
  const bool was_slower = cost.ns_per_kib > size.of(other(way)).ns_per_kib;
  if (cost.samples < first_tries) {
    cost.ns_per_kib = cost.samples == 0 ? now : std::min(cost.ns_per_kib, now);
    ++cost.samples;
  } else {
    const float weight = now < cost.ns_per_kib ? weight_down : weight_up;
    cost.ns_per_kib += weight * (std::min(now, 2 * cost.ns_per_kib) - cost.ns_per_kib);
  }
  if (was_slower && now < size.of(other(way)).ns_per_kib) {
    size.interval_messages = interval_min_messages;  // the machine has changed
    size.before_retry_messages = 1;
  }
}

}  // namespace overlap::speculative
