// One request to the owner of some memory, which may be at hand to carry it out.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>

namespace overlap::newrma {

/// A place in memory that the processes of a node map, with whose state a request and its answer
/// are handed over. Whoever asks waits a little and takes the request back if the owner has not
/// come: it depends on nobody who computes. All zero bytes are a free one.
///
///   free --claim--> claimed --post--> posted --take--> taken --answer--> answered
///    ^                                  |                                   |
///    +------------withdraw--------------+-------------release---------------+
///
/// @tparam Atomic  std::atomic, or a model's that begins with zero
template <template <class> class Atomic = std::atomic>
class RequestSlot {
 public:
  // Of whoever asks.

  /// @returns  false: another process asks
  [[nodiscard]] bool try_claim() noexcept {
    // Q1, pairs with Q5: the last one has read its answer before the place is written anew.
    return change(State::free, State::claimed, std::memory_order_acquire);
  }
  /// The request is written.
  void post() noexcept { state_.store(State::posted, std::memory_order_release); }  // Q2
  [[nodiscard]] bool is_answered() const noexcept {
    return state_.load(std::memory_order_acquire) == State::answered;  // Q4b, pairs with Q4
  }
  /// @returns  false: it has been taken, the answer comes
  [[nodiscard]] bool try_withdraw() noexcept {
    return change(State::posted, State::free, std::memory_order_release);
  }
  /// The answer is read.
  void release() noexcept { state_.store(State::free, std::memory_order_release); }  // Q5

  // Of the owner.

  [[nodiscard]] bool is_posted() const noexcept {
    return state_.load(std::memory_order_relaxed) == State::posted;
  }
  /// @returns  false: it has been withdrawn
  [[nodiscard]] bool try_take() noexcept {
    return change(State::posted, State::taken, std::memory_order_acquire);  // Q3, pairs with Q2
  }
  /// It has been carried out, the answer is written.
  void answer() noexcept { state_.store(State::answered, std::memory_order_release); }  // Q4

  auto operator<=>(const RequestSlot&) const = default;  ///< of a model

 private:
  enum class State : std::uint32_t { free, claimed, posted, taken, answered };

  bool change(State from, State to, std::memory_order order) noexcept {
    return state_.compare_exchange_strong(from, to, order, std::memory_order_relaxed);
  }

  Atomic<State> state_{};
};

/// Whether asking is worth the wait: an owner that has not come is asked again after 1, 2, 4 ...
/// other requests.
class AskingPace {
 public:
  static constexpr std::uint32_t pause_max = 1024;

  [[nodiscard]] bool may_ask() noexcept { return left_ == 0 || --left_ == 0; }
  /// One that was not asked has taken the time of so many.
  void note_long(std::uint32_t requests) noexcept {
    if (left_ > 1) left_ -= std::min(requests, left_ - 1);
  }
  /// Requests that were not asked, or will not be, since the owner did not come.
  [[nodiscard]] std::uint32_t pause() const noexcept { return pause_; }
  /// Has the owner answered when it was asked last?
  [[nodiscard]] bool is_answered() const noexcept { return answered_; }
  void note_answered() noexcept {
    pause_ = left_ = 0;
    answered_ = true;
  }
  void note_in_vain() noexcept {
    answered_ = false;
    pause_ = std::clamp(pause_ * 2, std::uint32_t{2}, pause_max);
    left_ = pause_;
  }

 private:
  std::uint32_t pause_ = 0;
  std::uint32_t left_ = 0;  ///< requests until the next is asked
  bool answered_ = false;
};

}  // namespace overlap::newrma
