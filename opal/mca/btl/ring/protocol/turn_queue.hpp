// Work that is done in turn by bodies that may come back here.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>

namespace overlap::ring {

/// A queue whose items leave it before they are worked on: a body may call serve() again, push and
/// remove. Each item is worked on once, in order.
template <class Item>
class TurnQueue {
 public:
  void push(Item item) { items_.push_back(item); }
  void remove(Item item) { std::erase(items_, item); }
  [[nodiscard]] bool empty() const noexcept { return items_.empty(); }
  template <class Holds>
  [[nodiscard]] bool any(Holds&& holds) const {
    return std::ranges::any_of(items_, holds);
  }

  /// Work on what is there now, not on what bodies push. @returns items worked on by this call
  template <class Body>
  int serve(Body&& body) {
    int served = 0;
    for (std::size_t turns = items_.size(); turns > 0 && !items_.empty(); --turns, ++served) {
      const Item item = items_.front();
      items_.pop_front();
      body(item);
    }
    return served;
  }

 private:
  std::deque<Item> items_;
};

}  // namespace overlap::ring
