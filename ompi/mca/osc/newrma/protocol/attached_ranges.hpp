// Memory that is attached to a dynamic window: as its owner knows it, and as the other ranks of its
// node read it.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace overlap::newrma {

/// Addresses [begin, end) of the process that owns them.
struct AttachedRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

/// Does attached memory cover these bytes? Several ranges without a gap between them do.
/// @param ranges  by address, without overlaps
[[nodiscard]] inline bool cover(std::span<const AttachedRange> ranges, std::uint64_t address,
                                std::uint64_t bytes) noexcept {
  std::uint64_t covered = address;
  bool inside = false;
  for (const AttachedRange& each : ranges) {
    if (each.begin > covered || covered > each.end) continue;
    inside = true;
    covered = each.end;
  }
  return inside && bytes <= covered - address;
}

/// What another process can tell of it.
enum class Attached : std::uint8_t { yes, no, unknown };

/// The owner's list.
class AttachedRanges {
 public:
  /// @returns  false: some of it is attached already
  [[nodiscard]] bool attach(std::uint64_t begin, std::uint64_t bytes) {
    const AttachedRange added{begin, begin + bytes};
    // Nothing overlaps nothing, but it is detached, too.
    const bool overlaps = std::ranges::any_of(ranges_, [&added](const AttachedRange& each) {
      return std::max(added.begin, each.begin) < std::min(added.end, each.end);
    });
    if (overlaps) return false;
    ranges_.insert(std::ranges::upper_bound(ranges_, begin, {}, &AttachedRange::begin), added);
    return true;
  }
  /// @returns  false: nothing that begins there is attached
  [[nodiscard]] bool detach(std::uint64_t begin) noexcept {
    const auto found = std::ranges::find(ranges_, begin, &AttachedRange::begin);
    if (found == ranges_.end()) return false;
    ranges_.erase(found);
    return true;
  }
  [[nodiscard]] bool covers(std::uint64_t address, std::uint64_t bytes) const noexcept {
    return cover(ranges_, address, bytes);
  }
  [[nodiscard]] std::span<const AttachedRange> all() const noexcept { return ranges_; }

 private:
  std::vector<AttachedRange> ranges_;
};

/// A copy of that list in memory that all ranks of the node map. All zero bytes are an empty one.
///
/// It has an end: where more is attached, and while it is being written, nothing is known, and only
/// the owner can tell.
///
/// Orders
///   A program lets others access what it has attached by some message. They may read the list
///   while other ranges come and go: P1 sequence_ odd, P2 the ranges (release), P3 sequence_ even
///   (release) -> R1 sequence_ (acquire), R2 the ranges (acquire), R3 sequence_ again. If R1 reads
///   a turn's P3, R2 sees its P2; if R2 sees a P2 of the next turn, R3 sees its P1.
///
/// @tparam Atomic  std::atomic, or a model's that begins with zero
/// @tparam tries  how often a reader looks that finds it being written
template <template <class> class Atomic = std::atomic, std::size_t ranges_max = 60,
          unsigned tries = 4>
class PublishedRanges {
 public:
  /// @thread  the owner's, one at a time
  void publish(std::span<const AttachedRange> ranges) noexcept {
    const std::uint64_t turn = sequence_.load(std::memory_order_relaxed);
    sequence_.store(turn + 1, std::memory_order_relaxed);  // P1
    const bool fit = ranges.size() <= ranges_max;
    count_.store(fit ? ranges.size() : too_many, std::memory_order_release);  // P2
    for (std::size_t i = 0; fit && i < ranges.size(); ++i) {
      ranges_[i].begin.store(ranges[i].begin, std::memory_order_release);
      ranges_[i].end.store(ranges[i].end, std::memory_order_release);
    }
    sequence_.store(turn + 2, std::memory_order_release);  // P3
  }

  /// Is all of this attached?
  [[nodiscard]] Attached knows(std::uint64_t address, std::uint64_t bytes) const noexcept {
    for (unsigned i = 0; i < tries; ++i) {
      const Attached answer = look(address, bytes);
      if (answer != Attached::unknown) return answer;
    }
    return Attached::unknown;
  }

 private:
  struct Place {
    Atomic<std::uint64_t> begin;
    Atomic<std::uint64_t> end;
  };
  static constexpr std::uint64_t too_many = UINT64_MAX;

  [[nodiscard]] Attached look(std::uint64_t address, std::uint64_t bytes) const noexcept {
    const std::uint64_t turn = sequence_.load(std::memory_order_acquire);  // R1
    std::array<AttachedRange, ranges_max> ranges;
    const std::uint64_t found = count_.load(std::memory_order_acquire);  // R2
    const std::size_t count = std::min<std::uint64_t>(found, ranges_max);
    for (std::size_t i = 0; i < count; ++i) {
      ranges[i].begin = ranges_[i].begin.load(std::memory_order_acquire);
      ranges[i].end = ranges_[i].end.load(std::memory_order_acquire);
    }
    const bool is_whole = turn % 2 == 0 && sequence_.load(std::memory_order_relaxed) == turn;  // R3
    if (!is_whole || found == too_many) return Attached::unknown;
    return cover(std::span(ranges).first(count), address, bytes) ? Attached::yes : Attached::no;
  }

  Atomic<std::uint64_t> sequence_{};
  Atomic<std::uint64_t> count_{};
  std::array<Place, ranges_max> ranges_{};
};

}  // namespace overlap::newrma
