// How the use of a peer ends, and whether that is a fault.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::ring {

enum class EndingState : std::uint8_t {
  used,             ///< there is no end in sight
  parting,          ///< we are ending the connections
  left,             ///< the peer has said goodbye: it ends them
  failed,           ///< a connection does not work any more; why is not known yet
  failed_expected,  ///< the same, and one side has said before that the end is meant
  ended,            ///< nothing goes to the peer any more, and nothing about it is reported
};
enum class EndingEvent : std::uint8_t {
  part_called,   ///< the upper layer has no more use for the peer
  goodbye_seen,  ///< the peer's
  post_failed,   ///< the device has not taken a request
  loss_known,    ///< the end of a connection, and why
  released,      ///< what the peer has is given back
};
enum class EndingAction : std::uint8_t {
  none,
  report_lost,  ///< to the user and to the upper layer
};
struct EndingStep {
  EndingState next;
  EndingAction action;
};

/// Advance the ending of one peer. Every event may come in every state.
///
///   used --part_called--> parting --goodbye_seen--> left --loss_known--> ended
///    |--post_failed--> failed --loss_known--> ended | report
///
///   event \ state   used            parting          left             failed
///   part_called     parting         parting          left             failed_expected
///   goodbye_seen    left            left             left             failed_expected
///   post_failed     failed          failed_expected  failed_expected  failed
///   loss_known      ended | report  ended            ended            ended | report
///   released        ended           ended            ended            ended
///
///   event \ state   failed_expected   ended
///   loss_known      ended             ended
///   released        ended             ended
///   all others      failed_expected   ended
[[nodiscard]] EndingStep step(EndingState now, EndingEvent event) noexcept;

/// Where the ending of one peer stands.
class Ending {
 public:
  EndingAction take(EndingEvent event) noexcept {
    const EndingStep taken = step(state_, event);
    state_ = taken.next;
    return taken.action;
  }
  /// May anything be sent to it?
  [[nodiscard]] bool usable() const noexcept { return state_ < EndingState::failed; }
  /// Does it still listen?
  [[nodiscard]] bool listens() const noexcept { return state_ < EndingState::left; }
  [[nodiscard]] bool ended() const noexcept { return state_ == EndingState::ended; }
  /// Would the end of its connections be a fault that nobody has heard of?
  [[nodiscard]] bool unexplained() const noexcept {
    return state_ == EndingState::used || state_ == EndingState::failed;
  }

 private:
  EndingState state_ = EndingState::used;
};

}  // namespace overlap::ring
