// What the protocol counts; each becomes an MPI_T performance variable.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

namespace overlap::speculative {

struct Counters {
  std::uint64_t rtr_sent = 0;
  std::uint64_t rtr_received = 0;
  std::uint64_t rtr_used = 0;
  std::uint64_t rtr_stale = 0;  ///< arrived too late: its message had gone eagerly, or its place in
                                ///< the stream is no longer known
  std::uint64_t stale_dropped =
      0;  ///< messages of communicators that have been freed, or for requests that have ended
  std::uint64_t rtr_dropped =
      0;  ///< kept or usable, and thrown away (eager send, too small, stop, revoke)
  std::uint64_t rtr_crossed = 0;  ///< met the RTS of the very message on its way; eager_flag only:
                                  ///< by numbers such an RTR is stale
  std::uint64_t rtr_awaited = 0;  ///< sends that waited a little for an RTR (P1.14)
  std::uint64_t rtr_awaited_in_time = 0;  ///< and got it
  std::uint64_t rts_sent = 0;
  std::uint64_t rts_only = 0;           ///< of these, where receives send no RTRs (shared memory)
  std::uint64_t rts_eager_sized = 0;    ///< of these, for messages that could have gone eagerly
  std::uint64_t unexpected_copied = 0;  ///< such messages that no receive waited for
  std::uint64_t unexpected_pushed = 0;  ///< the same, where they could not be copied
  std::uint64_t late_receives = 0;      ///< found the RTS of their message
  std::uint64_t wildcard_receives = 0;  ///< posted with a wildcard when their RTS came
  std::uint64_t rtr_ack_sent = 0;
  std::uint64_t rts_ack_sent = 0;
  std::uint64_t done_chained = 0;  ///< DONEs posted right behind their data
  std::uint64_t revoke_sent = 0;
  std::uint64_t eager_flag_stops = 0;
  std::uint64_t eager_flag_resumes = 0;
  std::uint64_t adaptation_stops = 0;
  std::uint64_t adaptation_resumes = 0;
  std::uint64_t mutes = 0;  ///< receivers that stopped by themselves (P1.9)
  std::uint64_t early_progress_hits = 0;
  std::uint64_t eager_lent = 0;  ///< a BTL went on using the user's buffer after the call (P3.2)
  std::uint64_t exchange_pauses = 0;  ///< behind sends (ExchangePace)
  std::uint64_t put_bytes = 0;
  std::uint64_t get_bytes = 0;
  std::uint64_t pipelined_bytes = 0;
  std::uint64_t extra_control_bytes =
      0;  ///< unused RTRs, RTR-ACKs, RTS-ACKs, REVOKEs and their answers (P1.13)
  std::uint64_t posted_queue_max = 0;
  std::uint64_t unexpected_queue_max = 0;
};

}  // namespace overlap::speculative
