// Adaptation: stop the speculation for an envelope whose RTRs are not used, and try again later
// (P1.11).
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::speculative {

struct AdaptationRules {
  bool enabled = true;
  std::uint32_t threshold_pct = 80;        ///< of the RTRs received, how many must be used
  std::uint32_t min_sample_rtrs = 16;      ///< no judgement before so many
  std::uint32_t resume_interval_rts = 64;  ///< RTSs without speculation before the next attempt
};

/// What a sender has seen of one envelope.
struct Adaptation {
  std::uint32_t received_rtrs = 0;
  std::uint32_t used_rtrs = 0;
  std::uint32_t rts_since_stop = 0;
  std::uint32_t stop_sequence = 0;  ///< of the RTS that has stopped it
  bool stopped = false;
  bool probed = false;  ///< stopped, and the receiver tries whether its RTRs would come in time
  bool must_resume = false;  ///< nobody here knows whether the receiver was told to stop
};

enum class Advice : std::uint8_t {
  keep,    ///< nothing changes
  stop,    ///< tell the receiver to send no more RTRs
  resume,  ///< tell the receiver to try again
};

/// @param base_sequence  what the receiver had seen of the forward stream
void note_rtr_received(Adaptation& state, std::uint32_t base_sequence) noexcept;
/// @returns  true when it ends a stop: the receiver's RTRs come in time again
bool note_rtr_used(Adaptation& state) noexcept;

/// Decide before an RTS goes out.
///
/// @param sequence  of the RTS
/// @source  P1.11; speculative-rendezvous-2009 section 3.6
[[nodiscard]] Advice before_rts(const AdaptationRules& rules, Adaptation& state,
                                std::uint32_t sequence) noexcept;

/// What a stopped receiver tries (P1.15). While its receives are posted before their RTSs come, it
/// sends an RTR for one of them now and then, a probe; probes that are used end the stop.
///
///   stopped:  RTS met a posted receive -> wait one message less;  no wait left -> probe
///             RTS found no receive     -> no evidence: wait anew
///             probe met its RTS        -> failed: wait anew
///             probe was used           -> won: the next receive probes; enough won -> not stopped
struct Probing {
  static constexpr std::uint8_t interval_messages = 3;  ///< between a failed probe and the next one
  static constexpr std::uint8_t needed_max = 8;
  static constexpr std::uint8_t settled_messages =
      64;  ///< used in a row: earlier stops are forgotten

  bool stopped = false;  ///< by the sender
  bool stopped_before = false;
  bool probe_out = false;
  std::uint8_t wait_messages = 0;
  std::uint8_t won = 0;
  std::uint8_t needed = 1;  ///< doubles with each stop, so that a pattern that comes and goes is
                            ///< not followed each time

  [[nodiscard]] bool may_offer() const noexcept {
    return !stopped || (wait_messages == 0 && !probe_out);
  }
  void stop() noexcept;
  void resume() noexcept { stopped = probe_out = false; }
  void offered() noexcept { probe_out = stopped; }
  void taken_back() noexcept { probe_out = false; }
  /// @param posted  its receive stood there already
  void rts_came(bool posted, bool with_rtr) noexcept;
  /// An RTR was used. @returns  true when that ends the stop
  bool used() noexcept;
};

}  // namespace overlap::speculative
