// How full is a send queue of which few requests say that they have ended? (P2.3)
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <vector>

namespace overlap::ring {

/// Counts the entries of one send queue. A signalled request's completion stands for the
/// unsignalled ones before it too, so signals are asked for just often enough that entries come
/// back while there still are free ones.
class SendQueueAccount {
 public:
  /// @param entries  of the queue, at least 1
  explicit SendQueueAccount(std::uint32_t entries)
      : entries_(entries), signal_every_(entries < 2 ? 1 : entries / 2), groups_(entries) {}

  [[nodiscard]] bool has_room() const noexcept { return used_ != entries_; }
  /// Must the next request be signalled? Each (entries/2)-th, and one that takes the last free
  /// entry: then nothing else could free it.
  [[nodiscard]] bool must_signal() const noexcept {
    return unsignalled_ + 1 >= signal_every_ || used_ + 1 == entries_;
  }
  /// A request was posted. Needs has_room(), and `signalled` where must_signal().
  void posted(bool signalled) noexcept {
    ++used_;
    ++unsignalled_;
    if (!signalled) return;
    groups_[(first_ + count_) % entries_] = unsignalled_;
    ++count_;
    unsignalled_ = 0;
  }
  /// The oldest signalled request has completed: it and all unsignalled ones before it are free.
  /// @returns  false when none is out: a request that was not signalled has failed
  bool completed() noexcept {
    if (count_ == 0) return false;
    used_ -= groups_[first_];
    first_ = first_ + 1 == entries_ ? 0 : first_ + 1;
    --count_;
    return true;
  }
  /// The queue is empty again, however that came about.
  void reset() noexcept { used_ = unsignalled_ = first_ = count_ = 0; }

  [[nodiscard]] std::uint32_t used() const noexcept { return used_; }

 private:
  std::uint32_t entries_;
  std::uint32_t signal_every_;
  std::uint32_t used_ = 0;
  std::uint32_t unsignalled_ = 0;      ///< posted behind the last signalled one
  std::vector<std::uint32_t> groups_;  ///< [entries], a queue: how many entries each signalled
                                       ///< request under way stands for
  std::uint32_t first_ = 0;
  std::uint32_t count_ = 0;
};

}  // namespace overlap::ring
