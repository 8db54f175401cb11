// Two ways to copy a message through shared memory while both of its callers wait, and which of
// them is faster here.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "copy_costs.hpp"

namespace overlap::speculative {

enum class CopyWay : std::uint8_t {
  read,       ///< the receiver reads the sender's memory through the kernel: one copy
  fragments,  ///< the sender copies piece by piece into shared memory, the receiver out of it
};

/// How often each way is tried.
struct CopyTrials {
  int smallest_width = 16;  ///< sizes below two to this power are taken for one
  /// Messages of a size that go the same way, one after the other: short ones tell what a way takes
  /// only when what it needs is in the caches.
  std::uint32_t group_messages = 1;
  std::uint32_t first_groups = 3;       ///< of each way before one is chosen
  std::uint32_t rare_retry_groups = 1;  ///< of reads, when they are tried as seldom as that gets
  /// Groups before the way that was the faster one until now is tried again; 0: as many as ever.
  std::uint32_t change_groups = 0;
  /// One that is far slower at first is not tried as often as the other one then.
  bool decides_early = true;
};

/// What messages have taken by each way, for each power of two of their sizes.
///
/// The first ones of a size go both ways in turns. Then all go the faster way, but for one now and
/// then, less often each time the other way proves slower again. Where processes share a core a
/// fragment may cost a slice of the scheduler: a way that is far slower is tried once at first, and
/// so seldom that all tries together cost a few percent. A kernel that pins pages slowly
/// (virtual machines) makes the difference: there two copies in the cache take a third of the time.
class CopyWays {
 public:
  static constexpr std::uint32_t interval_min_groups = 16;
  static constexpr std::uint32_t interval_max_groups = 256;
  static constexpr float far_slower = 32;  ///< times the other's

  explicit CopyWays(const CopyTrials& trials = {}) noexcept
      : trials_(trials), size_classes_(trials.smallest_width) {}

  /// The way of the next message of so many bytes.
  [[nodiscard]] CopyWay choose(std::uint64_t bytes) noexcept;
  /// Was that the last one of those that go the same way, whose time says something?
  [[nodiscard]] bool ends_group() const noexcept { return ends_group_; }
  /// A message has got through. @param bytes  > 0
  void took(CopyWay way, std::uint64_t bytes, std::uint64_t ns) noexcept;

 private:
  struct Cost {
    std::uint32_t tries = 0;    ///< messages that were sent this way
    std::uint32_t samples = 0;  ///< that have arrived
    float ns_per_kib = 0;       ///< the least of the first ones, then near_least()
  };
  struct Size {
    std::array<Cost, 2> costs{};
    std::uint32_t interval_groups = interval_min_groups;
    std::uint32_t before_retry_groups = interval_min_groups;
    std::uint32_t left_messages = 0;  ///< that go the same way
    CopyWay way = CopyWay::read;
    std::optional<CopyWay> faster;  ///< once both ways have been tried

    [[nodiscard]] Cost& of(CopyWay way) noexcept { return costs[static_cast<std::size_t>(way)]; }
    /// Of the slower way, in times of the faster one's; 1 before both are known.
    [[nodiscard]] float ratio() const noexcept;
    [[nodiscard]] std::uint32_t tries() const noexcept;
    void end_first_tries(std::uint32_t first_groups) noexcept;
  };
  [[nodiscard]] Size& size_of(std::uint64_t bytes) noexcept {
    return sizes_[size_classes_.of(bytes)];
  }
  void begin_group(Size& size) const noexcept;
  [[nodiscard]] CopyWay faster_of(Size& size) const noexcept;
  static void put_off_retry(Size& size) noexcept;

  CopyTrials trials_;
  SizeClasses size_classes_;
  bool ends_group_ = false;
  std::array<Size, SizeClasses::count> sizes_{};
};

}  // namespace overlap::speculative
