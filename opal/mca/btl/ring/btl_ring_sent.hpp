// Fragments that are sent, whose owners have to be called back.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "protocol/turn_queue.hpp"

#include "btl_ring_fragments.hpp"
#include "btl_ring_registration.hpp"
#include "btl_ring_upper.hpp"

namespace overlap::ring {

/// @thread  Guard held
class SentFragments {
 public:
  /// All outlive it.
  SentFragments(FragmentPool& fragments, RegistrationCache& registrations,
                UpperLayer& upper) noexcept
      : fragments_(fragments), registrations_(registrations), upper_(upper) {}

  /// Tell the upper layer that a fragment's buffer is free.
  void finish(Fragment& fragment, int status) noexcept;
  /// The same at the next progress.
  void finish_later(Fragment& fragment) { done_.push(&fragment); }
  /// The same at once and without a callback.
  void discard(Fragment& fragment) noexcept;

  [[nodiscard]] bool empty() const noexcept { return done_.empty(); }
  /// @returns  fragments finished
  int serve() {
    return done_.serve([this](Fragment* fragment) { finish(*fragment, OPAL_SUCCESS); });
  }

 private:
  void end_lending(Fragment& fragment) noexcept;

  FragmentPool& fragments_;
  RegistrationCache& registrations_;
  UpperLayer& upper_;
  TurnQueue<Fragment*> done_;  // sent, callback due
};

}  // namespace overlap::ring
