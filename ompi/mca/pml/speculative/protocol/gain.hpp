// What speculation gained in a job, or why it gained nothing, in one sentence for users.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>

namespace overlap::speculative {

/// Counters of the whole job, summed up over its processes.
struct JobTotals {
  std::uint64_t rts_eager_sized = 0;    ///< of messages up to the eager limit
  std::uint64_t rts_sent = 0;           ///< of larger ones
  std::uint64_t rts_only = 0;           ///< of these, where receives send no RTRs
  std::uint64_t late_receives = 0;      ///< posted after the RTS of their message had come
  std::uint64_t wildcard_receives = 0;  ///< posted in time, with MPI_ANY_SOURCE or MPI_ANY_TAG
  std::uint64_t rtr_sent = 0;
  std::uint64_t rtr_used = 0;
  std::uint64_t rtr_late = 0;     ///< stale or crossed: the message was on its way already
  std::uint64_t rtr_dropped = 0;  ///< met an eager message, were too small, stopped or revoked
  std::uint64_t stops = 0;        ///< envelopes stopped by the adaptation or by their receivers
  bool speculation = true;        ///< pml_speculative_speculation
};

/// Say how many large messages used an RTR, and when it is less than half of them, the likeliest
/// reason and what to change.
[[nodiscard]] std::string explain_gain(const JobTotals& totals);

}  // namespace overlap::speculative
