// A queue that takes no memory before its first use, and allocates only while it grows.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace overlap {

template <class T>
class RingQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] T& front() noexcept { return items_[head_]; }
  /// @param index  counted from the front, less than size()
  [[nodiscard]] T& at(std::size_t index) noexcept {
    return items_[(head_ + index) % items_.size()];
  }
  void push(T item) {
    if (count_ == items_.size()) grow();
    items_[(head_ + count_) % items_.size()] = std::move(item);
    ++count_;
  }
  void pop() {
    items_[head_] = T{};  // what it owns goes now
    head_ = (head_ + 1) % items_.size();
    --count_;
  }
  void clear() noexcept { head_ = count_ = 0; }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 8 : 2 * items_.size());
    for (std::size_t i = 0; i < count_; ++i)
      larger[i] = std::move(items_[(head_ + i) % items_.size()]);
    items_ = std::move(larger);
    head_ = 0;
  }

  std::vector<T> items_;
  std::size_t head_ = 0;
  std::size_t count_ = 0;
};

}  // namespace overlap
