// RTR usage per envelope and the decision to stop and resume.
#include "adaptation.hpp"

namespace overlap::speculative {
namespace {

// Old behaviour fades: past this many RTRs both counts are halved, so that a program that changes its pattern is judged by the new one.
constexpr std::uint32_t memory_rtrs = 256;

}  // namespace

void note_rtr_received(Adaptation& state) noexcept {
  if (++state.received_rtrs >= memory_rtrs) {
    state.received_rtrs /= 2;
    state.used_rtrs /= 2;
  }
}

void note_rtr_used(Adaptation& state) noexcept { ++state.used_rtrs; }

Advice before_rts(const AdaptationRules& rules, Adaptation& state) noexcept {
  if (!rules.enabled) return Advice::keep;
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
  state.rts_since_stop = 0;
  return Advice::stop;
}

}  // namespace overlap::speculative
