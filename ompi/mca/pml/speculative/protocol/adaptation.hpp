// Adaptation: stop the speculation for an envelope whose RTRs are not used, and try again later (P1.11).
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
  bool stopped = false;
};

enum class Advice : std::uint8_t {
  keep,    ///< nothing changes
  stop,    ///< tell the receiver to send no more RTRs
  resume,  ///< tell the receiver to try again
};

void note_rtr_received(Adaptation& state) noexcept;
void note_rtr_used(Adaptation& state) noexcept;

/// Decide before an RTS goes out.
///
/// @source  P1.11; speculative-rendezvous-2009 section 3.6
[[nodiscard]] Advice before_rts(const AdaptationRules& rules, Adaptation& state) noexcept;

}  // namespace overlap::speculative
