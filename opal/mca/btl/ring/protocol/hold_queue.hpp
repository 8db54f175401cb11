// Messages of the send/receive channel that came before their turn (P2.5).
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

namespace overlap::ring {

/// First in, first out, per peer: the channel keeps its order, so only the front can be next. Empty it owns no memory.
template <class T>
class HoldQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// Needs !empty().
  [[nodiscard]] T& front() noexcept { return items_[first_]; }

  /// @returns  false when there is no memory; nothing has changed then
  [[nodiscard]] bool try_push(T item) noexcept {
    if (count_ == items_.size() && !grow()) return false;
    items_[(first_ + count_) & (items_.size() - 1)] = std::move(item);
    ++count_;
    return true;
  }
  /// Needs !empty().
  void pop() noexcept {
    items_[first_] = T{};
    first_ = (first_ + 1) & (items_.size() - 1);
    --count_;
  }

 private:
  [[nodiscard]] bool grow() noexcept {
    try {
      std::vector<T> larger(items_.empty() ? 8 : items_.size() * 2);  // a power of two
      for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(items_[(first_ + i) & (items_.size() - 1)]);
      items_.swap(larger);
      first_ = 0;
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }

  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace overlap::ring
