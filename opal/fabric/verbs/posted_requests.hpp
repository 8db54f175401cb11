// What was posted to a send queue and not yet reported, so that its end can be told when the device
// does not.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace overlap::fabric::verbs {

/// The work requests of one send queue, oldest first. Completions come in the order of posting; one
/// that succeeds stands for all unsignalled requests before it. Users may give several requests one
/// id: the device names them by marks, which are counted.
class PostedRequests {
 public:
  /// @param entries  of the send queue
  explicit PostedRequests(std::uint32_t entries) : ring_(entries) {}

  [[nodiscard]] bool has_room() const noexcept { return count_ != ring_.size(); }
  /// Mark of the next request.
  [[nodiscard]] std::uint32_t next() const noexcept { return next_; }
  /// The next one is posted. Needs has_room().
  void posted(std::uint64_t id, bool signalled) noexcept {
    at(count_++) = {id, signalled};
    signalled_ += signalled ? 1 : 0;
    ++next_;
  }
  /// The device has reported a request: it and all before it are no more to be reported.
  /// @returns  its id; nullopt when it is none of these
  [[nodiscard]] std::optional<std::uint64_t> ended(std::uint32_t mark) noexcept {
    const std::uint32_t index = mark - (next_ - count_);
    if (index >= count_) return std::nullopt;
    for (std::uint32_t before = index; before > 0; --before) static_cast<void>(take());
    return take().id;
  }
  /// Take out all, oldest first, and tell of the signalled ones. @param report  (id)
  template <class Report>
  void flush(Report&& report) {
    while (count_ > 0) {
      if (const Entry entry = take(); entry.signalled) report(entry.id);
    }
  }

  [[nodiscard]] std::uint32_t size() const noexcept { return count_; }
  [[nodiscard]] std::uint32_t signalled() const noexcept { return signalled_; }

 private:
  struct Entry {
    std::uint64_t id = 0;
    bool signalled = false;
  };

  [[nodiscard]] Entry& at(std::uint32_t index) noexcept {
    const std::size_t place = first_ + std::size_t{index};
    return ring_[place < ring_.size() ? place : place - ring_.size()];
  }
  Entry take() noexcept {
    const Entry entry = at(0);
    first_ = first_ + 1 == ring_.size() ? 0 : first_ + 1;
    --count_;
    signalled_ -= entry.signalled ? 1 : 0;
    return entry;
  }

  std::vector<Entry> ring_;
  std::size_t first_ = 0;
  std::uint32_t count_ = 0;
  std::uint32_t signalled_ = 0;
  std::uint32_t next_ = 0;  // wraps
};

}  // namespace overlap::fabric::verbs
