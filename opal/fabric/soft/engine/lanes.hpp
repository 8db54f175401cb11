// What is on its way between connected queue pairs: messages on the wire, arrivals, large copies.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <deque>

#include "objects.hpp"
#include "schedule.hpp"

namespace overlap::fabric::soft {

/// A lane whose large message is being copied piece by piece.
struct Moving {
  Pair* pair = nullptr;
  Lane* lane = nullptr;
};

/// Puts messages on the wire and turns what has left into arrivals.
class Lanes {
 public:
  Lanes(Schedule& schedule, Wire& wire) noexcept : schedule_(schedule), wire_(wire) {}

  /// Send a request towards the peer. Precondition: nothing of this lane is on the wire
  void send_request(Pair& pair, std::uint64_t task, std::uint64_t bytes);
  /// Send the next response that waits for its lane, if the lane is free.
  void send_response(Pair& pair);
  /// A mark was reached: its bytes arrive one latency later.
  /// @returns  true: the whole message has left, the lane is free
  [[nodiscard]] bool mark_reached(Pair& pair, Lane& lane);
  /// See to it that an alarm goes off when the lane's first arrival is there.
  void schedule_arrival(Lane& lane);
  /// Drop everything that is on its way in this lane.
  void halt(Lane& lane);
  /// While a link is down nothing is answered: Alarm::give_up goes off after the sender's time.
  void watch_link(Pair& pair);

  /// Leave a large copy to take_moving(), which gives all of them their turns.
  void move_later(const Moving& moving) { backlog_.push_back(moving); }
  [[nodiscard]] bool has_backlog() const noexcept { return !backlog_.empty(); }
  [[nodiscard]] Moving take_moving();

 private:
  void start(Pair& pair, Lane& lane, std::uint64_t task, std::uint64_t bytes);

  Schedule& schedule_;
  Wire& wire_;
  std::deque<Moving> backlog_;
};

}  // namespace overlap::fabric::soft
