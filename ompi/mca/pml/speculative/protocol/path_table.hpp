// Which way messages to one process go, by size, and why: a table for users.
// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "send_path.hpp"

namespace overlap::speculative {

/// Do receives from a process offer their buffers (RTR)?
enum class RtrUse : std::uint8_t {
  sent,
  off,            ///< pml_speculative_speculation
  self,           ///< a process's messages to itself
  other_job,      ///< it may be in MPI_Comm_disconnect, where it answers no cancel
  shared_memory,  ///< the sender's own processor would make the copy
  interrupts,     ///< data comes as early without, and in one piece
};

struct RtrFacts {
  bool speculation = true;            ///< the tunable
  bool self = false;                  ///< the process itself
  bool other_job = false;             ///< of another job, and the RTR would name memory
  bool copies_itself = false;         ///< a put is a copy by the sender's processor
  bool shared_memory_always = false;  ///< the tunable pml_speculative_shared_memory
  bool only_fragments = false;  ///< the RTR would name no memory, and interrupt threads answer
                                ///< an RTS while both sides compute
};

/// Where the sender's own processor would make the copy, an RTR only moves it into the sender's
/// call. Where an RTR would only bring fragments, which cost a copy more than a put, and the
/// interrupt threads answer an RTS at once, it gains nothing.
[[nodiscard]] constexpr RtrUse choose_rtr(const RtrFacts& facts) noexcept {
  if (!facts.speculation) return RtrUse::off;
  if (facts.self) return RtrUse::self;
  if (facts.other_job) return RtrUse::other_job;
  if (facts.copies_itself && !facts.shared_memory_always) return RtrUse::shared_memory;
  return facts.only_fragments ? RtrUse::interrupts : RtrUse::sent;
}

/// How data that could be read comes where both callers are in MPI until it is there.
enum class BlockingCopies : std::uint8_t { read, measured, fragments };

/// What is known of the way to one process.
struct PathFacts {
  std::string eager_btl;   ///< takes eager messages; several are joined by "+"
  std::string memory_btl;  ///< puts and gets; empty: none does
  bool can_put = false;
  bool can_get = false;
  bool rtr_names_memory = true;  ///< pml_speculative_cancel, and what the rails are like
  BlockingCopies blocking_copies = BlockingCopies::read;  ///< from MPI_Send to MPI_Recv
  /// Of what could go eagerly (EagerReads); fragments: it does.
  BlockingCopies eager_reads = BlockingCopies::fragments;
  bool interrupts = false;  ///< the interrupt thread of each side progresses its messages
  SendFacts send;           ///< eager_bytes, zero_copy_bytes, can_inject; of a contiguous message
  RtrFacts rtr;
  std::uint64_t rtr_min_bytes = 0;  ///< smallest receive that sends an RTR
};

/// One class of messages.
struct PathRow {
  std::uint64_t first_bytes = 0;
  std::uint64_t last_bytes = 0;  ///< UINT64_MAX: no limit
  std::string path;
  std::string btl;
  std::string why;
};

/// The rows in the order of sizes; those of large messages come in the order of preference.
[[nodiscard]] std::vector<PathRow> path_table(const PathFacts& facts);

/// The same as text, a line per row. @param who  "rank 0 to rank 1 on HOST"
[[nodiscard]] std::string render_path_table(const std::string& who,
                                            const std::vector<PathRow>& rows);

}  // namespace overlap::speculative
