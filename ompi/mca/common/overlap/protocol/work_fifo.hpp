// Work that waits for room: what a BTL could not take, in the order in which it was offered.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cassert>
#include <cstddef>

namespace overlap {

/// One piece of work that a BTL had no room for. Embedded in what it belongs to (a request) or
/// allocated by itself (a control message); a FIFO refers to it until it has been taken.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Offer it to its BTL again. It is in no FIFO during the call and may be gone afterwards.
  ///
  /// @returns  false: there is still no room; the FIFO puts it back to its front
  [[nodiscard]] virtual bool try_again() = 0;
  [[nodiscard]] bool waiting() const noexcept { return waiting_; }

 protected:
  ~Work() = default;

 private:
  friend class WorkFifo;
  Work* next_ = nullptr;
  bool waiting_ = false;
};

/// First in, first out. Nothing overtakes: the first piece without room ends a round.
///
/// @thread  progress lock held
class WorkFifo {
 public:
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// @param work  in no FIFO
  void push(Work& work) noexcept {
    assert(!work.waiting_);
    work.waiting_ = true;
    work.next_ = nullptr;
    (last_ != nullptr ? last_->next_ : first_) = &work;
    last_ = &work;
    ++size_;
  }

  /// Offer what waits until something finds no room, at most `work_max` pieces. Does nothing when
  /// called from inside itself: a BTL may call back into its user while it is offered something.
  ///
  /// @returns  pieces taken
  std::size_t retry(std::size_t work_max) {
    if (retrying_) return 0;
    retrying_ = true;
    std::size_t taken = 0;
    while (taken < work_max && first_ != nullptr) {
      Work& work = pop();
      if (!work.try_again()) {
        push_front(work);
        break;
      }
      ++taken;
    }
    retrying_ = false;
    return taken;
  }

  /// Forget everything, for the end of the process. @param drop  called with each piece
  template <class Drop>
  void clear(Drop&& drop) {
    while (first_ != nullptr) drop(pop());
  }

 private:
  Work& pop() noexcept {
    Work& work = *first_;
    first_ = work.next_;
    if (first_ == nullptr) last_ = nullptr;
    work.next_ = nullptr;
    work.waiting_ = false;
    --size_;
    return work;
  }
  void push_front(Work& work) noexcept {
    assert(!work.waiting_);  // it must not queue itself in its own turn and refuse as well
    work.waiting_ = true;
    work.next_ = first_;
    first_ = &work;
    if (last_ == nullptr) last_ = &work;
    ++size_;
  }

  Work* first_ = nullptr;
  Work* last_ = nullptr;
  std::size_t size_ = 0;
  bool retrying_ = false;
};

}  // namespace overlap
