// RTR usage per envelope and the decision to stop and resume.
// SPDX-License-Identifier: BSD-3-Clause
#include "adaptation.hpp"

#include <algorithm>

namespace overlap::speculative {
namespace {

// Old behaviour fades: past this many RTRs both counts are halved, so that a program that changes
// its pattern is judged by the new one.
constexpr std::uint32_t memory_rtrs = 256;

}  // namespace

void note_rtr_received(Adaptation& state, std::uint32_t base_sequence) noexcept {
  // One that was on its way when the stop went out says nothing.
  if (state.stopped && static_cast<std::int32_t>(base_sequence - state.stop_sequence) > 0)
    state.probed = true;
  if (++state.received_rtrs >= memory_rtrs) {
    state.received_rtrs /= 2;
    state.used_rtrs /= 2;
  }
}

bool note_rtr_used(Adaptation& state) noexcept {
  const bool ends_stop = state.stopped;
  if (ends_stop) state = Adaptation{};
  ++state.used_rtrs;
  return ends_stop;
}

void Probing::stop() noexcept {
  if (stopped_before)
    needed = std::min<std::uint8_t>(static_cast<std::uint8_t>(needed * 2), needed_max);
  stopped_before = true;
  stopped = true;
  probe_out = false;
  won = 0;
  wait_messages = interval_messages;
}

void Probing::rts_came(bool posted, bool with_rtr) noexcept {
  if (!stopped) return;
  if (!posted || with_rtr) {
    probe_out = false;
    won = 0;
    wait_messages = interval_messages;
  } else if (wait_messages != 0) {
    --wait_messages;
  }
}

bool Probing::used() noexcept {
  if (!stopped) {
    if (won < settled_messages && ++won == settled_messages) {
      needed = 1;
      stopped_before = false;
    }
    return false;
  }
  probe_out = false;
  wait_messages = 0;
  if (++won < needed) return false;
  resume();
  won = 0;
  return true;
}

Advice before_rts(const AdaptationRules& rules, Adaptation& state,
                  std::uint32_t sequence) noexcept {
  if (!rules.enabled) return Advice::keep;
  if (state.must_resume) {
    state.must_resume = false;
    return Advice::resume;
  }
  if (state.stopped) {
    if (++state.rts_since_stop < rules.resume_interval_rts) return Advice::keep;
    state = Adaptation{};
    return Advice::resume;
  }
  if (state.received_rtrs < rules.min_sample_rtrs) return Advice::keep;
  if (std::uint64_t{state.used_rtrs} * 100 >=
      std::uint64_t{state.received_rtrs} * rules.threshold_pct)
    return Advice::keep;
  state.stopped = true;
  state.probed = false;
  state.stop_sequence = sequence;
  state.rts_since_stop = 0;
  return Advice::stop;
}

}  // namespace overlap::speculative
