// Virtual time and the alarms of the engine: a heap whose members can be moved and taken out.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace overlap::fabric::soft {

/// Nanoseconds of a clock that only the caller knows.
using Time = std::int64_t;
inline constexpr Time never = std::numeric_limits<Time>::max();

struct Manager;
struct Pair;

/// What an alarm is for. All but the last belong to one queue pair.
enum class Alarm : std::uint8_t {
  start,      ///< the next task may start
  request,    ///< the request flow reaches its mark
  response,   ///< the response flow reaches its mark
  arrive,     ///< bytes or a request arrive at the peer
  come_back,  ///< a response arrives
  retire,     ///< a completion becomes visible
  try_again,  ///< a message that found no receive entry is sent again
  give_up,    ///< the peer's end has not answered for too long
  manage,     ///< a management queue's task has taken its time
};

class TimerHeap;

/// One alarm; lives in its owner and is in at most one heap.
struct Timer {
  Timer(Alarm alarm, Pair& owner) noexcept : alarm(alarm), owner(&owner) {}
  explicit Timer(Manager& manager) noexcept : alarm(Alarm::manage), manager(&manager) {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Alarm alarm;
  Pair* owner = nullptr;
  Manager* manager = nullptr;
  Time at = never;
  std::uint64_t order = 0;  ///< of setting: equal times go first come, first served
  std::size_t place = 0;
  TimerHeap* heap = nullptr;

  [[nodiscard]] bool armed() const noexcept { return heap != nullptr; }
};

/// Timers by time. Setting, moving and taking out cost O(log n).
class TimerHeap {
 public:
  [[nodiscard]] Timer* first() const noexcept { return heap_.empty() ? nullptr : heap_.front(); }

  /// Arm the timer here, wherever it was before. `never` only takes it out.
  void set(Timer& timer, Time at) {
    clear(timer);
    if (at == never) return;
    timer.at = at;
    timer.order = next_order_++;
    timer.heap = this;
    timer.place = heap_.size();
    heap_.push_back(&timer);
    rise(timer.place);
  }

  static void clear(Timer& timer) noexcept {
    if (timer.heap != nullptr) timer.heap->remove(timer);
  }

 private:
  [[nodiscard]] static bool earlier(const Timer& a, const Timer& b) noexcept {
    return a.at != b.at ? a.at < b.at : a.order < b.order;
  }

  void remove(Timer& timer) noexcept {
    const std::size_t hole = timer.place;
    swap_places(hole, heap_.size() - 1);
    heap_.pop_back();
    timer.heap = nullptr;
    timer.at = never;
    if (hole < heap_.size()) {
      rise(hole);
      sink(hole);
    }
  }

  void swap_places(std::size_t a, std::size_t b) noexcept {
    std::swap(heap_[a], heap_[b]);
    heap_[a]->place = a;
    heap_[b]->place = b;
  }

  void rise(std::size_t i) noexcept {
    for (; i > 0 && earlier(*heap_[i], *heap_[(i - 1) / 2]); i = (i - 1) / 2)
      swap_places(i, (i - 1) / 2);
  }

  void sink(std::size_t i) noexcept {
    for (;;) {
      std::size_t least = i;
      for (std::size_t child = 2 * i + 1; child <= 2 * i + 2 && child < heap_.size(); ++child) {
        if (earlier(*heap_[child], *heap_[least])) least = child;
      }
      if (least == i) return;
      swap_places(i, least);
      i = least;
    }
  }

  std::vector<Timer*> heap_;
  std::uint64_t next_order_ = 0;
};

}  // namespace overlap::fabric::soft
