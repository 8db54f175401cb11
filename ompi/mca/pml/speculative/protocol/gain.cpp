// The counters of a job in words.
// SPDX-License-Identifier: BSD-3-Clause
#include "gain.hpp"

#include <algorithm>

namespace overlap::speculative {
namespace {

constexpr const char* post_early =
    "To gain, post MPI_Irecv with its source and tag before the computation and before the sender "
    "calls MPI_Send.";

std::string share(std::uint64_t part, std::uint64_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

/// Why large messages used no RTR: what most of them have met.
std::string reason(const JobTotals& totals) {
  if (!totals.speculation) return "No receive sends RTRs: pml_speculative_speculation is false.";
  // Whatever else such messages met: an earlier receive would not have helped.
  if (2 * totals.rts_only >= totals.rts_sent)
    return share(totals.rts_only, totals.rts_sent) +
           " announced messages went where receives send no RTR (rts_only): over shared memory, "
           "where the copy is work for a processor whoever makes it (pml_speculative_shared_memory "
           "is auto), over TCP, where the interrupt threads move the data while both sides compute "
           "(common_overlap_progress), to the process itself, or over RDMA to another job.";
  const std::uint64_t most = std::max(
      {totals.late_receives, totals.wildcard_receives, totals.rtr_late, totals.rtr_dropped});
  if (most == 0)
    return "No receive was seen to be late: receives stand behind one with a wildcard, have small "
           "buffers, or are the first from their process on a communicator.";
  if (most == totals.late_receives)
    return share(most, totals.rts_sent) +
           " receives were posted after their message had been announced (late_receives). " +
           std::string(post_early);
  if (most == totals.wildcard_receives)
    return share(most, totals.rts_sent) +
           " receives had MPI_ANY_SOURCE or MPI_ANY_TAG (wildcard_receives); such a receive sends "
           "no RTR, because it could meet several messages. To gain, name source and tag.";
  if (most == totals.rtr_late)
    return share(most, totals.rtr_sent) +
           " RTRs arrived when their message had been announced already (rtr_stale, rtr_crossed): "
           "both sides start at about the same time. " +
           std::string(post_early);
  return share(most, totals.rtr_sent) +
         " RTRs met a message that could not use them (rtr_dropped): an eager one, one larger than "
         "the receive, or over TCP a synchronous one (MPI_Ssend) unless pml_speculative_cancel is "
         "sender.";
}

std::string explain_large(const JobTotals& totals) {
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

}  // namespace

std::string explain_gain(const JobTotals& totals) {
  std::string text = explain_large(totals);
  if (totals.rts_eager_sized != 0)
    text += " " + std::to_string(totals.rts_eager_sized) +
            " messages up to the eager limit were announced, for their receiver to read "
            "(rts_eager_sized, pml_speculative_blocking_copy).";
  return text;
}

}  // namespace overlap::speculative
