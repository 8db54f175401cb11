// Slow paths of the progress lock, as templates: the library and the exhaustive test compile the
// same lines.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "opal/mca/common/overlap/progress_lock.hpp"

namespace overlap {

template <class Platform>
void BasicProgressLock<Platform>::start(Mode mode) noexcept {
  const bool biased = mode == Mode::biased && Platform::offers_biased();
  owner_ = biased ? Platform::self() : nullptr;
}

template <class Platform>
void BasicProgressLock<Platform>::place_state(Word* word) noexcept {
  state_ = word ? word : &home_state_;
  state_->store(0, std::memory_order_relaxed);
}

/// Owner, after it knocked at a closed gate: step back, let the guest finish, try again.
template <class Platform>
void BasicProgressLock<Platform>::lock_contended_owner() noexcept {
  for (;;) {
    state_->store(0,
                  std::memory_order_release);  // H1; a guest that waits for us must see us outside
    for (unsigned i = 0; i < Platform::spin_count && gate_.load(std::memory_order_relaxed) != 0;
         ++i)
      Platform::pause();
    std::uint32_t seen = gate_.load(std::memory_order_relaxed);
    if (seen == 1 && gate_.compare_exchange_strong(seen, 2, std::memory_order_relaxed)) seen = 2;
    if (seen == 2) Platform::wait(gate_, 2);
    state_->store(1, Platform::owner_store_order);  // O1, pairs with G3
    Platform::compiler_fence();
    if (gate_.load(Platform::owner_load_order) == 0)  // O2, pairs with G1 and H2
      return;
  }
}

/// Guest, behind the gate it closed: order that before the look at the owner.
/// @returns  true when the owner is outside and will find the gate closed
template <class Platform>
bool BasicProgressLock<Platform>::owner_left() noexcept {
  return Platform::membarrier()                            // G2, pairs with every O1 -> O2
         && state_->load(std::memory_order_seq_cst) == 0;  // G3, pairs with O1 and H1
}

template <class Platform>
bool BasicProgressLock<Platform>::try_lock_other() noexcept {
  Word& word = owner_ ? gate_ : *state_;
  ready_guest();  // before the gate closes
  std::uint32_t expected = 0;
  if (state_->load(std::memory_order_relaxed) != 0  // do not disturb an owner who is plainly inside
      || !word.compare_exchange_strong(
             expected, 1,
             std::memory_order_seq_cst))  // G1, pairs with O2; H2 or H3 from the last holder
    return false;
  if (owner_ && !owner_left()) {
    if (gate_.exchange(0, std::memory_order_release) == 2) Platform::wake_all(gate_);
    return false;
  }
  holder_.store(Platform::self(), std::memory_order_relaxed);
  return true;
}

/// Three-state futex mutex: 0 free, 1 held, 2 held and somebody may sleep.
template <class Platform>
void BasicProgressLock<Platform>::lock_mutex(Word& word) noexcept {
  std::uint32_t seen = 0;
  if (word.compare_exchange_strong(seen, 1,
                                   std::memory_order_seq_cst))  // G1; H2 or H3 from the last holder
    return;
  for (unsigned i = 0; i < Platform::spin_count; ++i) {
    Platform::pause();
    seen = 0;
    if (word.load(std::memory_order_relaxed) == 0 &&
        word.compare_exchange_strong(seen, 1, std::memory_order_seq_cst))
      return;
  }
  while (word.exchange(2, std::memory_order_seq_cst) != 0) Platform::wait(word, 2);
}

template <class Platform>
void BasicProgressLock<Platform>::lock_other() noexcept {
  ready_guest();  // before the gate closes
  lock_mutex(owner_ ? gate_ : *state_);
  if (owner_) {
    if (!Platform::membarrier())  // G2
      Platform::fail("the kernel has withdrawn membarrier from this process");
    Platform::await_zero(*state_);  // G3, pairs with H1
  }
  holder_.store(Platform::self(), std::memory_order_relaxed);
}

template <class Platform>
void BasicProgressLock<Platform>::unlock_other() noexcept {
  if (Platform::checks && !held_by_me_hint())
    Platform::fail("left by a thread that was not inside");
  holder_.store(nullptr, std::memory_order_relaxed);
  if (owner_) {
    // All: the owner sleeps here without wanting the gate, and would not pass a single wake-up on.
    if (gate_.exchange(0, std::memory_order_release) == 2)  // H2
      Platform::wake_all(gate_);
  } else if (state_->exchange(0, std::memory_order_release) == 2) {  // H3
    Platform::wake_one(*state_);
  }
}

}  // namespace overlap
