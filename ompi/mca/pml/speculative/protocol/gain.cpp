// The counters of a job in words.
// SPDX-License-Identifier: BSD-3-Clause
#include "gain.hpp"

namespace overlap::speculative {
namespace {

constexpr const char* post_early =
    "To gain, post MPI_Irecv with its source and tag before the computation and before the sender "
    "calls MPI_Send.";

std::string share(std::uint64_t part, std::uint64_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

/// Receives that sent no RTR: why.
std::string why_no_rtr(const JobTotals& totals) {
  if (totals.late_receives >= totals.wildcard_receives && totals.late_receives > 0)
    return share(totals.late_receives, totals.rts_sent) +
           " receives were posted after their message had been announced (late_receives). " +
           std::string(post_early);
  if (totals.wildcard_receives > 0)
    return share(totals.wildcard_receives, totals.rts_sent) +
           " receives had MPI_ANY_SOURCE or MPI_ANY_TAG (wildcard_receives); such a receive sends "
           "no RTR, because it could meet several messages. To gain, name source and tag.";
  return "No receive was seen to be late: receives come through shared memory, where speculation "
         "is "
         "off unless pml_speculative_shared_memory is always, stand behind one with a wildcard, "
         "have "
         "small buffers, or pml_speculative_speculation is false.";
}

std::string reason(const JobTotals& totals) {
  if (totals.rtr_sent == 0) return "No receive sent an RTR (rtr_sent is 0). " + why_no_rtr(totals);
  const std::uint64_t unused = totals.rtr_late + totals.rtr_dropped;
  if (unused == 0 || 2 * totals.rtr_used >= totals.rtr_sent)
    return "Most RTRs were used, but few receives sent one. " + why_no_rtr(totals);
  if (totals.rtr_late >= totals.rtr_dropped)
    return share(totals.rtr_late, totals.rtr_sent) +
           " RTRs arrived when their message had been announced already (rtr_stale, rtr_crossed): "
           "both sides start at about the same time. " +
           std::string(post_early);
  return share(totals.rtr_dropped, totals.rtr_sent) +
         " RTRs met a message that could not use them (rtr_dropped): an eager one, one larger than "
         "the receive, or over TCP a synchronous one (MPI_Ssend) unless pml_speculative_cancel is "
         "sender.";
}

}  // namespace

std::string explain_gain(const JobTotals& totals) {
  const std::uint64_t large = totals.rts_sent + totals.rtr_used;
  if (large == 0)
    return "No message was larger than the eager limit, so there was nothing to gain. Small "
           "messages are sent at once by every PML.";
  std::string text = share(totals.rtr_used, large) +
                     " large messages went to the buffer of a posted receive without being "
                     "announced (RTR).";
  if (2 * totals.rtr_used < large) {
    text += " " + reason(totals);
    if (totals.stops != 0)
      text += " Speculation was stopped for " + std::to_string(totals.stops) +
              " envelopes where it did not pay (adaptation_stops, mutes).";
  }
  return text;
}

}  // namespace overlap::speculative
