// Who lends buffers and who copies them.
// SPDX-License-Identifier: BSD-3-Clause
#include "lending.hpp"

#include "test/support/catch.hpp"

using overlap::ring::Lending;

namespace {

/// So many messages, each waited for or not. @returns  those that were lent
std::uint32_t send(Lending& lending, std::uint32_t messages, bool waits) {
  std::uint32_t lent = 0;
  for (std::uint32_t i = 0; i < messages; ++i) {
    if (!lending.try_lend()) continue;
    ++lent;
    lending.returned(waits ? Lending::looks_of_waiting : Lending::looks_of_waiting - 1, 1000, 999);
  }
  return lent;
}

}  // namespace

TEST_CASE("Lending: who computes lends all buffers") {
  Lending lending;
  CHECK(send(lending, 100'000, false) == 100'000);
}

TEST_CASE("Lending: who waits tries, and ever more seldom") {
  Lending lending;
  CHECK(send(lending, Lending::sample, true) == Lending::sample);
  CHECK(lending.pausing());
  CHECK(send(lending, Lending::pause_first, true) == 0);
  CHECK_FALSE(lending.pausing());
  CHECK(send(lending, Lending::sample, true) == Lending::sample);
  CHECK(send(lending, 4 * Lending::pause_first, true) == 0);
  CHECK(send(lending, 1'000'000, true) <= 5 * Lending::sample);
}

TEST_CASE("Lending: who computes again lends again, with short pauses") {
  Lending lending;
  static_cast<void>(send(lending, 20'000, true));
  while (lending.pausing()) static_cast<void>(lending.try_lend());
  CHECK(send(lending, 1000, false) == 1000);
  static_cast<void>(send(lending, 2 * Lending::sample, true));
  REQUIRE(lending.pausing());
  std::uint32_t copied = 0;
  for (; lending.pausing(); ++copied) static_cast<void>(lending.try_lend());
  CHECK(copied <= Lending::pause_first);
}

TEST_CASE("Lending: a wait that is shorter than the copy pays") {
  Lending lending;
  for (std::uint32_t i = 0; i < 3 * Lending::sample; ++i) lending.returned(100, 1000, 1000);
  CHECK_FALSE(lending.pausing());
}

TEST_CASE("Lending: the last buffers of a sample do not count for the next one") {
  Lending lending;
  for (std::uint32_t i = 0; i < 3 * Lending::sample; ++i)
    lending.returned(100, 2, 1);  // a window of them
  std::uint32_t copied = 0;
  for (; lending.pausing(); ++copied) static_cast<void>(lending.try_lend());
  CHECK(copied == Lending::pause_first);
}

TEST_CASE("Lending: the majority of a sample decides") {
  for (std::uint32_t waited = 0; waited <= Lending::sample; ++waited) {
    CAPTURE(waited);
    Lending lending;
    for (std::uint32_t i = 0; i < Lending::sample; ++i)
      lending.returned(i < waited ? Lending::looks_of_waiting : 0, 1000, 999);
    CHECK(lending.pausing() == (waited > Lending::sample / 2));
  }
}

TEST_CASE("Lending: pauses grow to their limit") {
  Lending lending;
  std::uint32_t pause = 0;
  for (int pauses = 0; pauses < 8; ++pauses) {
    for (std::uint32_t i = 0; i < Lending::sample; ++i)
      lending.returned(Lending::looks_of_waiting, 1000, 999);
    for (pause = 0; lending.pausing(); ++pause) static_cast<void>(lending.try_lend());
  }
  CHECK(pause == Lending::pause_last);
}
