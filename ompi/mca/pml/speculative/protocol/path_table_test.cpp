// What users read about the paths of their messages, for the BTLs that they meet.
// SPDX-License-Identifier: BSD-3-Clause
#include "path_table.hpp"

#include <algorithm>

#include "test/support/catch.hpp"

using namespace overlap::speculative;

namespace {

const PathFacts vader{.eager_btl = "vader",
                      .memory_btl = "vader",
                      .can_put = true,
                      .can_get = true,
                      .send = {.eager_bytes = 32768, .can_inject = true, .refuses_for_room = true},
                      .rtr = {.copies_itself = true}};
const PathFacts tcp{.eager_btl = "tcp",
                    .memory_btl = "tcp",
                    .can_put = true,
                    .send = {.eager_bytes = 65000},
                    .rtr = {}};
const PathFacts ring{.eager_btl = "ring",
                     .memory_btl = "ring",
                     .can_put = true,
                     .can_get = true,
                     .send = {.eager_bytes = 8192, .zero_copy_bytes = 1024, .can_inject = true},
                     .rtr = {}};

struct Expected {
  std::uint64_t first_bytes;
  std::uint64_t last_bytes;
  std::string path;
  std::string why;  ///< part of it
};

void check(const PathFacts& facts, const std::vector<Expected>& expected) {
  const std::vector<PathRow> rows = path_table(facts);
  REQUIRE(rows.size() == expected.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(i, rows[i].why);
    CHECK(rows[i].first_bytes == expected[i].first_bytes);
    CHECK(rows[i].last_bytes == expected[i].last_bytes);
    CHECK(rows[i].path == expected[i].path);
    CHECK(rows[i].why.find(expected[i].why) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("Shared memory: no RTR, because the sender's processor would copy", "[path_table]") {
  check(vader, {{0, 32768, "inject", "(btl_sendi)"},
                {32769, UINT64_MAX, "RTS, get", "pml_speculative_shared_memory is auto"}});
}

TEST_CASE("Shared memory with interrupt threads: the receiver's reads", "[path_table]") {
  PathFacts served = vader;
  served.interrupts = true;
  check(served, {{0, 32768, "inject", "(btl_sendi)"},
                 {32769, UINT64_MAX, "RTS, get", "the receiver reads while both compute"}});
}

TEST_CASE("Shared memory: between blocking calls in fragments", "[path_table]") {
  PathFacts blocking = vader;
  blocking.blocking_copies = BlockingCopies::measured;
  check(blocking,
        {{0, 32768, "inject", ""}, {32769, UINT64_MAX, "RTS, get", "where that has been faster"}});
  blocking.blocking_copies = BlockingCopies::fragments;
  check(blocking,
        {{0, 32768, "inject", ""},
         {32769, UINT64_MAX, "RTS, get", "in fragments (pml_speculative_blocking_copy)"}});
}

TEST_CASE("Shared memory: what could go eagerly is read", "[path_table]") {
  PathFacts facts = vader;
  facts.eager_reads = BlockingCopies::measured;
  check(facts, {{0, 32768, "inject", "the receiver reads messages if that has been faster"},
                {32769, UINT64_MAX, "RTS, get", ""}});
  facts.eager_reads = BlockingCopies::read;
  check(facts, {{0, 32768, "inject", "the receiver reads messages (pml_speculative_blocking_copy)"},
                {32769, UINT64_MAX, "RTS, get", ""}});
  facts.send.eager_bytes = 4095;
  CHECK(path_table(facts).front().why.find("from 4096 bytes on") == std::string::npos);
}

TEST_CASE("Shared memory with pml_speculative_shared_memory always", "[path_table]") {
  PathFacts always = vader;
  always.rtr.shared_memory_always = true;
  check(always, {{0, 32768, "inject", ""},
                 {32769, UINT64_MAX, "RTR, put", "MPI_Isend writes into its buffer"},
                 {32769, UINT64_MAX, "RTS, get", "no posted receive has sent an RTR"}});
}

TEST_CASE("TCP: no btl_sendi, no get", "[path_table]") {
  check(tcp, {{0, 65000, "copy", "copied into a buffer"},
              {65001, UINT64_MAX, "RTR, put", "posted first"},
              {65001, UINT64_MAX, "RTS, put", "when both have called MPI"}});
}

TEST_CASE("TCP with interrupt threads: messages move while both compute", "[path_table][P4.3]") {
  PathFacts facts = tcp;
  facts.interrupts = true;
  check(facts, {{0, 65000, "copy", ""},
                {65001, UINT64_MAX, "RTR, put", "posted first"},
                {65001, UINT64_MAX, "RTS, put", "while both compute (common_overlap_progress)"}});
  facts.can_put = false;
  check(facts, {{0, 65000, "copy", ""},
                {65001, UINT64_MAX, "RTR, fragments", "fragments move while both compute"},
                {65001, UINT64_MAX, "RTS, fragments", "fragments move while both compute"}});
}

TEST_CASE("No RTRs that only bring fragments where interrupt threads answer",
          "[path_table][P4.3]") {
  PathFacts facts = tcp;
  facts.interrupts = true;
  facts.rtr_names_memory = false;
  facts.rtr.only_fragments = true;
  check(facts, {{0, 65000, "copy", ""},
                {65001, UINT64_MAX, "RTS, put", "no RTRs: the interrupt threads answer"}});
  CHECK(choose_rtr({.only_fragments = true}) == RtrUse::interrupts);
  CHECK(choose_rtr({.only_fragments = false}) == RtrUse::sent);
  CHECK(choose_rtr({.speculation = false, .only_fragments = true}) == RtrUse::off);
}

TEST_CASE("btl/ring: a class of its own for zero-copy", "[path_table]") {
  check(ring, {{0, 1023, "inject", "where it refuses: copy"},
               {1024, 8192, "inject", "where it refuses: zero-copy"},
               {8193, UINT64_MAX, "RTR, put", ""},
               {8193, UINT64_MAX, "RTS, get", ""}});
}

TEST_CASE("Without speculation no RTR row, and the tunable is named", "[path_table]") {
  PathFacts off = ring;
  off.rtr.speculation = false;
  check(off, {{0, 1023, "inject", ""},
              {1024, 8192, "inject", ""},
              {8193, UINT64_MAX, "RTS, get", "pml_speculative_speculation is false"}});
}

TEST_CASE("A larger rtr_min moves the RTR row only", "[path_table]") {
  PathFacts facts = tcp;
  facts.rtr_min_bytes = 1000000;
  check(facts, {{0, 65000, "copy", ""},
                {1000000, UINT64_MAX, "RTR, put", ""},
                {65001, UINT64_MAX, "RTS, put", ""}});
}

TEST_CASE("Without access to memory data goes in fragments", "[path_table]") {
  PathFacts facts = tcp;
  facts.can_put = false;
  facts.memory_btl.clear();
  check(facts, {{0, 65000, "copy", ""},
                {65001, UINT64_MAX, "RTR, fragments", "when both have called MPI"},
                {65001, UINT64_MAX, "RTS, fragments", "when both have called MPI"}});
  CHECK(path_table(facts)[2].btl == "tcp");
}

TEST_CASE("Every size has the row of the path that is chosen for it", "[path_table]") {
  for (const PathFacts& facts : {vader, tcp, ring}) {
    const std::vector<PathRow> rows = path_table(facts);
    for (std::uint64_t bytes = 0; bytes < 70000; bytes += 7) {
      SendFacts send = facts.send;
      send.bytes = bytes;
      send.plain = true;
      const SendPath path = choose_path(send);
      std::size_t found = 0;
      for (const PathRow& row : rows) {
        if (bytes < row.first_bytes || bytes > row.last_bytes) continue;
        ++found;
        CHECK((row.path.starts_with("RT")) == (path == SendPath::rendezvous));
      }
      REQUIRE(found >= 1);
      if (path != SendPath::rendezvous) REQUIRE(found == 1);
    }
  }
}

TEST_CASE("The text has a line per row under a line that names both ends", "[path_table]") {
  const std::string text = render_path_table("rank 0 to rank 1 on node1", path_table(vader));
  CHECK(
      text.starts_with("pml/speculative: messages from rank 0 to rank 1 on node1\n"
                       "  bytes       path      BTL    why\n"
                       "  0 .. 32768  inject    vader  the BTL"));
  CHECK(std::ranges::count(text, '\n') == 4);
}

TEST_CASE("TCP: RTRs that name no memory bring fragments", "[path_table]") {
  PathFacts local = tcp;
  local.rtr_names_memory = false;
  check(local, {{0, 65000, "copy", ""},
                {65001, UINT64_MAX, "RTR, fragments", "pml_speculative_cancel is local"},
                {65001, UINT64_MAX, "RTS, put", "no posted receive"}});
}

TEST_CASE("Memory is not offered to processes of another job", "[path_table]") {
  PathFacts spawned = ring;
  spawned.rtr.other_job = true;
  for (const PathRow& row : path_table(spawned)) CHECK_FALSE(row.path.starts_with("RTR"));
  CHECK(path_table(spawned).back().why.find("a process of another job") != std::string::npos);
}
