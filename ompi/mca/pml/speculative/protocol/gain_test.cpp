// What a user reads at the end of a job.
// SPDX-License-Identifier: BSD-3-Clause
#include "test/support/catch.hpp"

#include "gain.hpp"

using namespace overlap::speculative;

namespace {

bool says(const JobTotals& totals, const char* words) {
  INFO(explain_gain(totals));
  return explain_gain(totals).find(words) != std::string::npos;
}

}  // namespace

TEST_CASE("a job without large messages has nothing to gain", "[P1.13]") {
  CHECK(says({}, "No message was larger than the eager limit"));
}

TEST_CASE("messages up to the eager limit that are read are no large ones", "[P1.13]") {
  CHECK(says({.rts_eager_sized = 5}, "No message was larger than the eager limit"));
  CHECK(says({.rts_eager_sized = 5}, "5 messages up to the eager limit were announced"));
  CHECK_FALSE(says({.rts_sent = 5}, "up to the eager limit were"));
}

TEST_CASE("used RTRs are counted, and need no advice", "[P1.13]") {
  const JobTotals totals{.rts_sent = 10, .rtr_sent = 95, .rtr_used = 90, .rtr_late = 5};
  CHECK(explain_gain(totals) ==
        "90 of 100 large messages went to the buffer of a posted receive without being announced "
        "(RTR).");
}

TEST_CASE("where nothing is gained the likeliest reason is named", "[P1.13]") {
  CHECK(says({.rts_sent = 7}, "or are the first from their process on a communicator"));
  CHECK(says({.rts_sent = 7, .rts_only = 7}, "(pml_speculative_shared_memory is auto)"));
  CHECK(says({.rts_sent = 7, .late_receives = 6, .wildcard_receives = 1},
             "6 of 7 receives were posted after their message had been announced"));
  CHECK(says({.rts_sent = 7, .late_receives = 1, .wildcard_receives = 6},
             "6 of 7 receives had MPI_ANY_SOURCE or MPI_ANY_TAG"));
  CHECK(says({.rts_sent = 90, .rtr_sent = 100, .rtr_used = 10, .rtr_late = 90},
             "90 of 100 RTRs arrived when their message had been announced already"));
  CHECK(says({.rts_sent = 90, .rtr_sent = 100, .rtr_used = 10, .rtr_dropped = 90},
             "90 of 100 RTRs met a message that could not use them"));
  CHECK(says({.rts_sent = 90, .late_receives = 89, .rtr_sent = 1, .rtr_late = 1},
             "89 of 90 receives were posted after"));
  CHECK(says({.rts_sent = 90, .late_receives = 90, .speculation = false},
             "pml_speculative_speculation is false"));
}

TEST_CASE("where no RTR can come nobody is told to post receives earlier", "[P1.13]") {
  const JobTotals totals{.rts_sent = 120, .rts_only = 120, .late_receives = 90};
  CHECK(says(totals, "120 of 120 announced messages went where receives send no RTR"));
  CHECK_FALSE(says(totals, "To gain"));
  CHECK(says({.rts_sent = 120, .rts_only = 50, .late_receives = 70},
             "70 of 120 receives were posted"));
}

TEST_CASE("stopped envelopes are named where nothing is gained", "[P1.11][P1.13]") {
  JobTotals totals{.rts_sent = 90, .rtr_sent = 16, .rtr_late = 16, .stops = 3};
  CHECK(says(totals, "stopped for 3 envelopes"));
  totals.rtr_used = 200;
  CHECK_FALSE(says(totals, "stopped for"));
}
