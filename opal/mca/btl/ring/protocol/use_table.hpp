// How often has each send buffer been used? (P3.1, P3.4)
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cost_model.hpp"

namespace overlap::ring {

/// Counts uses by address. It knows nothing of what stands at the address: whether memory is still
/// the registered one is the registration cache's business (P3.5); an entry of a buffer that was
/// freed is only a wrong guess.
/// @source  frequent-buffer-eager-2010 sections 3.2.1 and 3.3
class UseTable {
 public:
  /// @param bucket_bits  1 to 30; untouched buckets cost no memory
  /// @param stop_percent  grow no further while fewer of the buffers than this are frequent, once
  /// chains have formed
  /// @param costs  outlives the table
  /// @throws std::bad_alloc
  UseTable(std::uint32_t bucket_bits, std::uint32_t stop_percent, const CostModel& costs);

  /// Count one use: the first CostModel::threshold() uses are copied. Sizes that never pay are not
  /// looked up.
  /// @returns  true: frequently used, send it in place
  [[nodiscard]] bool count(const void* address, std::uint32_t bytes) noexcept {
    const std::uint32_t threshold = costs_.threshold(bytes);
    if (threshold == CostModel::never) return false;
    const std::uint32_t index = find(address);
    if (index == none) {
      add(address);
      return false;
    }
    Entry& entry = entries_[index];
    if (entry.frequent != 0) return true;
    if (entry.refused != 0) return false;
    if (entry.uses >= threshold) {
      entry.frequent = 1;
      ++frequent_;
      return true;
    }
    if (entry.uses != uses_max) ++entry.uses;
    return false;
  }

  /// The same without counting.
  [[nodiscard]] bool is_frequent(const void* address, std::uint32_t bytes) const noexcept {
    if (costs_.threshold(bytes) == CostModel::never) return false;
    const std::uint32_t index = find(address);
    return index != none && entries_[index].frequent != 0;
  }

  /// The buffer cannot be registered: copy it from now on, and do not try for ever.
  void forget(const void* address) noexcept;

  /// Are unknown buffers not added any more? Known ones go on being counted: when enough of them
  /// become frequent it grows again.
  [[nodiscard]] bool stopped() const noexcept {
    return no_memory_ || (chained_ != 0 && std::uint64_t{frequent_} * 100 <
                                               std::uint64_t{stop_percent_} * entries_.size());
  }
  [[nodiscard]] std::uint32_t buffers() const noexcept {
    return static_cast<std::uint32_t>(entries_.size());
  }
  [[nodiscard]] std::uint32_t frequent() const noexcept { return frequent_; }
  /// Buffers that share a bucket with one that was there before.
  [[nodiscard]] std::uint32_t chained() const noexcept { return chained_; }

 private:
  static constexpr std::uint32_t none = UINT32_MAX;
  static constexpr std::uint32_t uses_max = (1U << 30U) - 1;
  struct Entry {
    const void* address;
    std::uint32_t next;  ///< in the bucket's chain, one more than an index; 0: the last
    std::uint32_t uses : 30;
    std::uint32_t frequent : 1;
    std::uint32_t refused : 1;
  };
  static_assert(sizeof(Entry) == 16);

  /// Multiplicative. The number of the page is folded into the place in the page first: of
  /// addresses that differ by a multiple of a large power of two, the product alone puts many into
  /// one bucket (use_table_test.cpp tries such strides).
  [[nodiscard]] std::size_t bucket_of(const void* address) const noexcept {
    const std::uint64_t number = reinterpret_cast<std::uintptr_t>(address);
    return (number ^ number >> 12U) * std::uint64_t{0x9e3779b97f4a7c15} >> shift_;
  }
  [[nodiscard]] std::uint32_t find(const void* address) const noexcept {
    std::uint32_t next =
        buckets_
            .get()[bucket_of(address)];  // one more than an index, so that calloc's 0 means none
    while (next != 0 && entries_[next - 1].address != address) next = entries_[next - 1].next;
    return next - 1;
  }
  void add(const void* address) noexcept;

  struct Free {
    void operator()(std::uint32_t* buckets) const noexcept { std::free(buckets); }
  };
  const CostModel& costs_;
  std::uint32_t shift_;
  std::uint32_t stop_percent_;
  std::unique_ptr<std::uint32_t, Free> buckets_;  ///< [1 << bucket_bits]
  std::vector<Entry> entries_;
  std::uint32_t frequent_ = 0;
  std::uint32_t chained_ = 0;
  bool no_memory_ = false;
};

}  // namespace overlap::ring
