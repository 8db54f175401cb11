// Rows come from choose_path() and choose_rtr(), so that the table shows what is really done.
// SPDX-License-Identifier: BSD-3-Clause
#include "path_table.hpp"

#include <algorithm>
#include <array>

#include "eager_reads.hpp"

namespace overlap::speculative {
namespace {

constexpr std::uint64_t no_limit = UINT64_MAX;

const char* name_of(SendPath path) noexcept {
  switch (path) {
    case SendPath::inject: return "inject";
    case SendPath::copy: return "copy";
    case SendPath::zero_copy: return "zero-copy";
    case SendPath::wait: return "wait";
    case SendPath::rendezvous: return "rendezvous";
  }
  return "";
}

std::string reason_for(SendPath path) {
  switch (path) {
    case SendPath::inject: return "the BTL copies header and data in one call (btl_sendi)";
    case SendPath::copy: return "data are copied into a buffer of the BTL";
    case SendPath::zero_copy: return "the BTL sends from the user's buffer";
    case SendPath::wait: return "no room";
    case SendPath::rendezvous: return "above the eager limit";
  }
  return "";
}

SendFacts with_bytes(SendFacts facts, std::uint64_t bytes) noexcept {
  facts.bytes = bytes;
  facts.plain = true;
  facts.crowded = false;
  return facts;
}

const char* or_read(BlockingCopies copies) noexcept {
  switch (copies) {
    case BlockingCopies::fragments: return "";
    case BlockingCopies::measured:
      return "; from 4096 bytes on the receiver reads messages if that has been faster "
             "(pml_speculative_blocking_copy is measured)";
    case BlockingCopies::read:
      return "; from 4096 bytes on the receiver reads messages (pml_speculative_blocking_copy)";
  }
  return "";
}

PathRow eager_row(const PathFacts& facts, std::uint64_t first, std::uint64_t last) {
  const SendFacts send = with_bytes(facts.send, first);
  const SendPath path = choose_path(send);
  PathRow row{first, last, name_of(path), facts.eager_btl, reason_for(path)};
  const SendPath other = after_refusal(path, send);
  if (other != SendPath::wait) row.why += std::string("; where it refuses: ") + name_of(other);
  static_assert(EagerReads::message_min_bytes == 4096);
  if (last >= EagerReads::message_min_bytes) row.why += or_read(facts.eager_reads);
  return row;
}

/// Sizes at which choose_path() may change its mind.
std::vector<std::uint64_t> eager_starts(const SendFacts& send) {
  std::vector<std::uint64_t> starts{0};
  const std::uint64_t lend = send.zero_copy_bytes;
  if (lend > 0 && lend <= send.eager_bytes) starts.push_back(lend);
  return starts;
}

std::string no_rtr(RtrUse use) {
  switch (use) {
    case RtrUse::sent: return "no posted receive has sent an RTR";
    case RtrUse::off: return "no RTRs: pml_speculative_speculation is false";
    case RtrUse::self: return "no RTRs: the process sends to itself";
    case RtrUse::other_job: return "no RTRs: a process of another job";
    case RtrUse::shared_memory:
      return "no RTRs: shared memory, where the sender's processor would make the copy "
             "(pml_speculative_shared_memory is auto)";
    case RtrUse::interrupts:
      return "no RTRs: the interrupt threads answer while both compute, and the data comes in one "
             "piece";
  }
  return "";
}

const char* between_blocking_calls(BlockingCopies copies) {
  switch (copies) {
    case BlockingCopies::read: return "";
    case BlockingCopies::measured:
      return "; from MPI_Send to MPI_Recv in fragments where that has been faster "
             "(pml_speculative_blocking_copy is measured)";
    case BlockingCopies::fragments:
      return "; from MPI_Send to MPI_Recv in fragments (pml_speculative_blocking_copy)";
  }
  return "";
}

void add_large(const PathFacts& facts, std::vector<PathRow>& rows) {
  if (facts.send.eager_bytes == no_limit) return;
  const std::uint64_t first = facts.send.eager_bytes + 1;
  const RtrUse use = choose_rtr(facts.rtr);
  const char* when = facts.interrupts ? "while both compute (common_overlap_progress)"
                                      : "when both have called MPI";
  const std::string fragments =
      std::string("neither side can access the other's memory; fragments move ") + when;
  if (use == RtrUse::sent) {
    const std::uint64_t from = std::max(first, facts.rtr_min_bytes);
    const bool put = facts.can_put && facts.rtr_names_memory;
    const std::string how =
        put             ? "it sent its address; MPI_Isend writes into its buffer"
        : facts.can_put ? "not for synchronous sends; in fragments, so that MPI_Cancel needs no "
                          "sender (pml_speculative_cancel is local)"
                        : fragments;
    rows.push_back({from, no_limit, put ? "RTR, put" : "RTR, fragments",
                    put ? facts.memory_btl : facts.eager_btl,
                    "the receive was posted first, with source and tag; " + how});
  }
  const std::string reads =
      std::string(facts.interrupts
                      ? "the receiver reads while both compute (common_overlap_progress)"
                      : "the receiver reads when it calls MPI") +
      between_blocking_calls(facts.blocking_copies);
  const bool memory = facts.can_get || facts.can_put;
  rows.push_back({first, no_limit,
                  facts.can_get   ? "RTS, get"
                  : facts.can_put ? "RTS, put"
                                  : "RTS, fragments",
                  memory ? facts.memory_btl : facts.eager_btl,
                  no_rtr(use) + "; " +
                      (facts.can_get   ? reads
                       : facts.can_put ? std::string("the sender writes ") + when
                                       : fragments)});
}

std::string size_range(const PathRow& row) {
  const std::string first = std::to_string(row.first_bytes);
  return row.last_bytes == no_limit ? first + " .."
                                    : first + " .. " + std::to_string(row.last_bytes);
}

}  // namespace

std::vector<PathRow> path_table(const PathFacts& facts) {
  std::vector<PathRow> rows;
  const std::vector<std::uint64_t> starts = eager_starts(facts.send);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::uint64_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : facts.send.eager_bytes;
    rows.push_back(eager_row(facts, starts[i], last));
  }
  add_large(facts, rows);
  return rows;
}

std::string render_path_table(const std::string& who, const std::vector<PathRow>& rows) {
  struct Column {
    const char* title;
    std::string (*text)(const PathRow&);
  };
  static constexpr std::array<Column, 4> columns{
      {{"bytes", size_range},
       {"path", [](const PathRow& row) { return row.path; }},
       {"BTL", [](const PathRow& row) { return row.btl; }},
       {"why", [](const PathRow& row) { return row.why; }}}};
  std::string text = "pml/speculative: messages from " + who + "\n";
  std::vector<std::string> lines(rows.size() + 1, "  ");
  for (const Column& column : columns) {
    std::vector<std::string> cells{column.title};
    for (const PathRow& row : rows) cells.push_back(column.text(row));
    const bool last = &column == &columns.back();
    const std::size_t width = std::ranges::max_element(cells, {}, [](const std::string& cell) {
                                return cell.size();
                              })->size();
    for (std::size_t i = 0; i < cells.size(); ++i)
      lines[i] += last ? cells[i] : cells[i] + std::string(width + 2 - cells[i].size(), ' ');
  }
  for (const std::string& line : lines) text += line + "\n";
  return text;
}

}  // namespace overlap::speculative
