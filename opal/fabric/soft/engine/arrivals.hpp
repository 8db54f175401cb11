// What arrives, in order: requests at the responder, responses at the poster, and their copying.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include "admission.hpp"
#include "data_mover.hpp"
#include "delivery.hpp"
#include "failures.hpp"
#include "lanes.hpp"
#include "objects.hpp"

namespace overlap::fabric::soft {

class Arrivals {
 public:
  Arrivals(Schedule& schedule, Lanes& lanes, const DataMover& mover, Admission& admission,
           Delivery& delivery, Failures& failures) noexcept
      : schedule_(schedule),
        lanes_(lanes),
        mover_(mover),
        admission_(admission),
        delivery_(delivery),
        failures_(failures) {}

  /// Take what has arrived at the responder.
  void arrive(Pair& pair);
  /// Take what has come back to the poster.
  void come_back(Pair& pair);
  /// Copy one piece of the large message whose turn it is. Precondition: Lanes::has_backlog()
  void move_backlog();

  /// Up to here a message is copied at once; larger ones give way to others between pieces.
  static constexpr std::uint64_t at_once_bytes = 16U << 10U;

 private:
  [[nodiscard]] bool move(Pair& pair, Lane& lane, const Arrival& arrival);
  [[nodiscard]] bool move_some(Pair& pair, Lane& lane);
  void moved(Pair& pair, Lane& lane);

  Schedule& schedule_;
  Lanes& lanes_;
  const DataMover& mover_;
  Admission& admission_;
  Delivery& delivery_;
  Failures& failures_;
};

}  // namespace overlap::fabric::soft
