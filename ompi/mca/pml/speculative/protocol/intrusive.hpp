// Intrusive doubly linked lists and hash chains: an element can stand in several at once and leaves
// each in O(1) without a search.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

namespace overlap::speculative {

/// Place of an element in one list. A link that is in no list has next == nullptr.
struct Link {
  Link* next = nullptr;
  Link* prev = nullptr;

  [[nodiscard]] bool linked() const noexcept { return next != nullptr; }
};

/// List of elements of type T through their member `M`. First in, first out; owns nothing.
template <class T, Link T::*M>
class List {
 public:
  List() noexcept { clear(); }
  List(const List&) = delete;
  List& operator=(const List&) = delete;

  [[nodiscard]] bool empty() const noexcept { return head_.next == &head_; }
  [[nodiscard]] T* front() noexcept { return empty() ? nullptr : element(head_.next); }
  [[nodiscard]] T* back() noexcept { return empty() ? nullptr : element(head_.prev); }
  [[nodiscard]] T* after(T& item) noexcept {
    Link* next = (item.*M).next;
    return next == &head_ ? nullptr : element(next);
  }
  [[nodiscard]] T* before(T& item) noexcept {
    Link* prev = (item.*M).prev;
    return prev == &head_ ? nullptr : element(prev);
  }

  void push_back(T& item) noexcept {
    Link& link = item.*M;
    link.prev = head_.prev;
    link.next = &head_;
    head_.prev->next = &link;
    head_.prev = &link;
  }

  static void remove(T& item) noexcept {
    Link& link = item.*M;
    link.prev->next = link.next;
    link.next->prev = link.prev;
    link.next = nullptr;
    link.prev = nullptr;
  }

 private:
  void clear() noexcept { head_.next = head_.prev = &head_; }

  static T* element(Link* link) noexcept {
    // The offset of a member is the same in every object; a real T is not needed to measure it.
    alignas(T) static char probe[sizeof(T)];
    auto* base = reinterpret_cast<T*>(probe);
    const auto offset = reinterpret_cast<char*>(&(base->*M)) - probe;
    return reinterpret_cast<T*>(reinterpret_cast<char*>(link) - offset);
  }

  Link head_;
};

/// Hash table of lists, keyed by a 32-bit number (a tag). Starts with one list inside the object
/// and doubles when the elements outnumber the lists twice, so that a chain stays short whatever
/// the number of keys; it never shrinks.
///
/// Elements with equal keys keep their order, also when the table grows.
template <class T, Link T::*M, std::int32_t T::*Key>
class TagTable {
 public:
  using Chain = List<T, M>;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] Chain& chain(std::int32_t key) noexcept {
    return mask_ == 0 ? first_ : more_[slot(key)];
  }

  /// Oldest element with this key, or nullptr.
  [[nodiscard]] T* find(std::int32_t key) noexcept {
    if (size_ == 0) return nullptr;
    Chain& list = chain(key);
    T* item = list.front();
    while (item != nullptr && item->*Key != key) item = list.after(*item);
    return item;
  }

  /// Youngest element with this key, or nullptr.
  [[nodiscard]] T* find_last(std::int32_t key) noexcept {
    if (size_ == 0) return nullptr;
    Chain& list = chain(key);
    T* item = list.back();
    while (item != nullptr && item->*Key != key) item = list.before(*item);
    return item;
  }

  /// Next older element with the same key, or nullptr.
  [[nodiscard]] T* find_before(T& item) noexcept {
    Chain& list = chain(item.*Key);
    T* previous = list.before(item);
    while (previous != nullptr && previous->*Key != item.*Key) previous = list.before(*previous);
    return previous;
  }

  /// Next younger element with the same key, or nullptr.
  [[nodiscard]] T* find_after(T& item) noexcept {
    Chain& list = chain(item.*Key);
    T* next = list.after(item);
    while (next != nullptr && next->*Key != item.*Key) next = list.after(*next);
    return next;
  }

  /// Some element, or nullptr when empty.
  [[nodiscard]] T* any() noexcept {
    if (size_ == 0) return nullptr;
    if (mask_ == 0) return first_.front();
    std::size_t i = 0;
    while (more_[i].empty()) ++i;
    return more_[i].front();
  }

  /// Visit every element; `visit` changes nothing here.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::size_t i = 0; size_ != 0 && i <= mask_; ++i) {
      Chain& list = mask_ == 0 ? first_ : more_[i];
      for (T* item = list.front(); item != nullptr; item = list.after(*item)) visit(*item);
    }
  }

  void insert(T& item) {
    if (size_ / 2 > mask_) grow();
    chain(item.*Key).push_back(item);
    ++size_;
  }

  void remove(T& item) noexcept {
    Chain::remove(item);
    --size_;
  }

 private:
  [[nodiscard]] std::size_t slot(std::int32_t key) const noexcept {
    // Fibonacci hashing; the upper half of the product is well mixed.
    return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(key)) * 0x9e3779b97f4a7c15U >>
            32U) &
           mask_;
  }

  // Out of the way of insert(), which is in every receive.
  [[gnu::cold, gnu::noinline]] void grow() {
    const std::size_t old_count = std::size_t{mask_} + 1;
    const std::size_t count = old_count < 8 ? 8 : old_count * 4;
    std::unique_ptr<Chain[]> old = std::move(more_);
    const bool was_single = mask_ == 0;
    more_ = std::make_unique<Chain[]>(count);
    mask_ = static_cast<std::uint32_t>(count - 1);
    for (std::size_t i = 0; i < old_count; ++i) {
      Chain& from = was_single ? first_ : old[i];
      while (T* item = from.front()) {
        Chain::remove(*item);
        more_[slot(item->*Key)].push_back(*item);
      }
    }
  }

  std::uint32_t size_ = 0;
  std::uint32_t mask_ = 0;
  Chain first_;
  std::unique_ptr<Chain[]> more_;
};

}  // namespace overlap::speculative
