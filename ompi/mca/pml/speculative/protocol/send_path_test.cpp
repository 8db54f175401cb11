// The choice of a send's path, as a table.
// SPDX-License-Identifier: BSD-3-Clause
#include "send_path.hpp"

#include "test/support/catch.hpp"

using namespace overlap::speculative;

TEST_CASE("The first path by the facts of a message") {
  struct Row {
    const char* what;
    SendFacts facts;  // bytes, eager_bytes, zero_copy_bytes, can_inject, plain, crowded ...
    SendPath expected;
  };
  const Row rows[] = {
      {"small", {8, 4096, 0, true, true, false}, SendPath::inject},
      {"empty", {0, 4096, 128, false, true, false}, SendPath::copy},
      {"no inject", {8, 4096, 0, false, true, false}, SendPath::copy},
      {"derived datatype", {8, 4096, 4, false, false, false}, SendPath::copy},
      {"zero-copy", {2048, 4096, 1024, false, true, false}, SendPath::zero_copy},
      {"inject is asked first", {2048, 4096, 1024, true, true, false}, SendPath::inject},
      {"below zero-copy", {512, 4096, 1024, false, true, false}, SendPath::copy},
      {"others wait", {8, 4096, 0, true, true, true}, SendPath::wait},
      {"at the limit", {4096, 4096, 0, true, true, false}, SendPath::inject},
      {"above the limit", {4097, 4096, 0, true, true, false}, SendPath::rendezvous},
      {"above it and crowded", {4097, 4096, 0, true, true, true}, SendPath::rendezvous},
  };
  for (const Row& row : rows) {
    INFO(row.what);
    CHECK(choose_path(row.facts) == row.expected);
  }
}

TEST_CASE("A refused message ends at wait, whatever its path") {
  for (const bool plain : {false, true}) {
    for (const std::uint64_t zero_copy_bytes : {0, 64, 4096}) {
      const SendFacts facts{1024, 4096, zero_copy_bytes, true, plain, false};
      SendPath path = choose_path(facts);
      const bool lends = plain && zero_copy_bytes == 64;
      CHECK(after_refusal(path, facts) == (lends ? SendPath::zero_copy : SendPath::copy));
      int refusals = 0;
      while (path != SendPath::wait) {
        path = after_refusal(path, facts);
        REQUIRE(++refusals <= 3);
      }
    }
  }
  const SendFacts refused_for_room{1024, 4096, 64, true, true, false, true};
  CHECK(after_refusal(SendPath::inject, refused_for_room) == SendPath::wait);
  const SendFacts large{8192, 4096, 0, true, true, false};
  CHECK(after_refusal(SendPath::rendezvous, large) == SendPath::rendezvous);
}
